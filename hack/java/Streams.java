import io.pravega.client.admin.StreamInfo;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.control.impl.SegmentCollection;
import io.pravega.client.segment.impl.Segment;
import io.pravega.client.stream.DeleteScopeFailedException;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.SegmentWithRange;
import io.pravega.client.stream.impl.StreamCutImpl;
import io.pravega.client.stream.impl.StreamSegments;
import io.pravega.shared.security.auth.AccessOperation;
import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Commands that create, change, describe and delete scopes and streams. */
final class Streams {
    private final Session session;
    private final Reads reads;

    Streams(Session session, Reads reads) {
        this.session = session;
        this.reads = reads;
    }

    Map<String, Object> createScope(Command command) {
        return Map.of(
                "changed", Busy.insist(() -> session.streams.createScope(command.scope())));
    }

    /** Create a stream, and its scope; see {@link Policies}. */
    Map<String, Object> create(Command command) {
        Busy.insist(() -> session.streams.createScope(command.scope()));
        StreamConfiguration configuration = Policies.configuration(command);
        return Map.of(
                "changed",
                Busy.insist(
                        () ->
                                session.streams.createStream(
                                        command.scope(), command.stream(), configuration)));
    }

    /** Set a stream's configuration; see {@link Policies}. */
    Map<String, Object> update(Command command) {
        StreamConfiguration configuration = Policies.configuration(command);
        return Map.of(
                "changed",
                Busy.insist(
                        () ->
                                session.streams.updateStream(
                                        command.scope(), command.stream(), configuration)));
    }

    /** Return a stream's configuration. */
    Map<String, Object> configuration(Command command) {
        return Policies.report(
                session.controller
                        .getStreamConfiguration(command.scope(), command.stream())
                        .join());
    }

    Map<String, Object> seal(Command command) {
        return Map.of("changed", session.streams.sealStream(command.scope(), command.stream()));
    }

    /** Seal a stream, which the store requires, and delete it. */
    Map<String, Object> delete(Command command) {
        seal(command);
        return Map.of("changed", session.streams.deleteStream(command.scope(), command.stream()));
    }

    /** Delete a scope with all its streams. */
    Map<String, Object> deleteScope(Command command) throws DeleteScopeFailedException {
        return Map.of("changed", session.streams.deleteScopeRecursive(command.scope()));
    }

    /** List every stream of a scope, including the store's internal streams. */
    Map<String, Object> list(Command command) {
        if (!session.streams.checkScopeExists(command.scope())) {
            return Map.of("scope", false, "streams", List.of());
        }
        List<String> names = new ArrayList<>();
        session.streams
                .listStreams(command.scope())
                .forEachRemaining(stream -> names.add(stream.getStreamName()));
        Collections.sort(names);
        return Map.of("scope", true, "streams", names);
    }

    /** Truncate at the tail, at a cut's text, or at {@code offsets=segment:offset,...}. */
    Map<String, Object> truncate(Command command) {
        StreamCut cut;
        if (command.has("offsets")) {
            cut = new StreamCutImpl(stream(command), offsets(command));
        } else if (command.has("cut")) {
            cut = StreamCut.from(command.text("cut"));
        } else {
            cut = describe(command).getTailStreamCut();
        }
        return Map.of(
                "changed",
                session.streams.truncateStream(command.scope(), command.stream(), cut));
    }

    /**
     * Replace {@code segments=} by new segments of {@code ranges=low-high,...}. By default, the
     * replaced segment is that with the lowest keys, and the ranges halve the replaced segments'
     * common range.
     */
    Map<String, Object> scale(Command command) {
        List<SegmentWithRange> active = active(command);
        List<Long> ids = new ArrayList<>(command.numbers("segments"));
        if (ids.isEmpty()) {
            ids.add(active.get(0).getSegment().getSegmentId());
        }
        Map<Double, Double> ranges = new TreeMap<>();
        if (command.has("ranges")) {
            for (String range : command.text("ranges").split(",")) {
                String[] bounds = range.split("-");
                ranges.put(Double.valueOf(bounds[0]), Double.valueOf(bounds[1]));
            }
        } else {
            double low = 1;
            double high = 0;
            for (SegmentWithRange segment : active) {
                if (ids.contains(segment.getSegment().getSegmentId())) {
                    low = Math.min(low, segment.getRange().getLow());
                    high = Math.max(high, segment.getRange().getHigh());
                }
            }
            ranges.put(low, (low + high) / 2);
            ranges.put((low + high) / 2, high);
        }
        boolean done =
                session.controller
                        .scaleStream(stream(command), ids, ranges, session.executor)
                        .getFuture()
                        .join();
        return Map.of("changed", done);
    }

    /** Return the token that a segment store with logins requires with each request. */
    Map<String, Object> token(Command command) {
        String token =
                session.controller
                        .getOrRefreshDelegationTokenFor(
                                command.scope(), command.stream(), AccessOperation.READ)
                        .join();
        return Map.of("token", token);
    }

    /** Describe a stream: its cuts and all segments, with the key ranges of active segments. */
    Map<String, Object> info(Command command) {
        StreamInfo info = describe(command);
        Map<Long, SegmentWithRange> active = new HashMap<>();
        if (!info.isSealed()) {
            active(command).forEach(s -> active.put(s.getSegment().getSegmentId(), s));
        }
        Map<Long, long[]> offsets = new TreeMap<>();
        active.keySet().forEach(id -> offsets.put(id, new long[2]));
        info.getTailStreamCut()
                .asImpl()
                .getPositions()
                .forEach((segment, at) -> offsets.put(segment.getSegmentId(), new long[] {at, at}));
        for (SegmentRange range :
                reads.ranges(stream(command), StreamCut.UNBOUNDED, info.getTailStreamCut())) {
            offsets.put(
                    range.getSegmentId(),
                    new long[] {range.getStartOffset(), range.getEndOffset()});
        }
        List<Map<String, Object>> segments = new ArrayList<>();
        offsets.forEach((id, span) -> segments.add(segment(id, span, active.get(id))));
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("sealed", info.isSealed());
        report.put("head", info.getHeadStreamCut().asText());
        report.put("tail", info.getTailStreamCut().asText());
        report.put("segments", segments);
        return report;
    }

    private static Map<String, Object> segment(long id, long[] span, SegmentWithRange active) {
        Map<String, Object> segment = new LinkedHashMap<>();
        segment.put("id", id);
        segment.put("start", span[0]);
        segment.put("end", span[1]);
        segment.put("low", active == null ? null : active.getRange().getLow());
        segment.put("high", active == null ? null : active.getRange().getHigh());
        return segment;
    }

    private StreamInfo describe(Command command) {
        return session.streams.fetchStreamInfo(command.scope(), command.stream()).join();
    }

    /** Return the active segments in ascending order of key ranges. */
    private List<SegmentWithRange> active(Command command) {
        StreamSegments current =
                session.controller.getCurrentSegments(command.scope(), command.stream()).join();
        try {
            // The ranges are private to the client, but a witness has to see them.
            Field field = SegmentCollection.class.getDeclaredField("segments");
            field.setAccessible(true);
            return ((Map<?, ?>) field.get(current))
                    .values().stream().map(SegmentWithRange.class::cast).toList();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException("another version of the client?", e);
        }
    }

    private static Map<Segment, Long> offsets(Command command) {
        Map<Segment, Long> offsets = new HashMap<>();
        for (String pair : command.text("offsets").split(",")) {
            String[] parts = pair.split(":");
            Segment segment =
                    new Segment(command.scope(), command.stream(), Long.parseLong(parts[0]));
            offsets.put(segment, Long.valueOf(parts[1]));
        }
        return offsets;
    }

    private static Stream stream(Command command) {
        return Stream.of(command.scope(), command.stream());
    }
}
