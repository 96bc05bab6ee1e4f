import io.pravega.client.stream.RetentionPolicy;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.StreamConfiguration;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Configurations of streams: {@code scaling=} FIXED (by default), EVENTS or BYTES, with {@code
 * segments= rate= factor=}; {@code keepBytes=} or {@code keepMillis=}; {@code tags=one,two}.
 */
final class Policies {
    private Policies() {}

    static StreamConfiguration configuration(Command command) {
        StreamConfiguration.StreamConfigurationBuilder builder =
                StreamConfiguration.builder().scalingPolicy(scaling(command));
        if (command.has("keepBytes")) {
            builder.retentionPolicy(RetentionPolicy.bySizeBytes(command.number("keepBytes")));
        } else if (command.has("keepMillis")) {
            Duration time = Duration.ofMillis(command.number("keepMillis"));
            builder.retentionPolicy(RetentionPolicy.byTime(time));
        }
        if (command.has("tags")) {
            builder.tags(List.of(command.text("tags").split(",")));
        }
        return builder.build();
    }

    private static ScalingPolicy scaling(Command command) {
        int segments = command.count("segments", 1);
        int rate = command.count("rate", 0);
        int factor = command.count("factor", 2);
        return switch (command.text("scaling", "FIXED")) {
            case "FIXED" -> ScalingPolicy.fixed(segments);
            case "EVENTS" -> ScalingPolicy.byEventRate(rate, factor, segments);
            case "BYTES" -> ScalingPolicy.byDataRate(rate, factor, segments);
            default -> throw new IllegalArgumentException("scaling is FIXED, EVENTS or BYTES");
        };
    }

    static Map<String, Object> report(StreamConfiguration configuration) {
        ScalingPolicy scaling = configuration.getScalingPolicy();
        RetentionPolicy retention = configuration.getRetentionPolicy();
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("scaling", scaling.getScaleType().name());
        report.put("rate", scaling.getTargetRate());
        report.put("factor", scaling.getScaleFactor());
        report.put("segments", scaling.getMinNumSegments());
        report.put("retention", retention == null ? null : retention.getRetentionType().name());
        report.put("keep", retention == null ? null : retention.getRetentionParam());
        report.put("most", retention == null ? null : retention.getRetentionMax());
        report.put("tags", configuration.getTags().stream().sorted().toList());
        return report;
    }
}
