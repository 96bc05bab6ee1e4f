import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The times from the writing of events to their reading, by the times in the events. Writer and
 * readers are of one machine, which has one clock for all of them.
 */
final class Delays implements Account {
    /** Nanoseconds of a step of the histogram. */
    private static final long STEP = 20_000;

    private static final double STEPS_PER_MS = 1e6 / STEP;

    /** Steps: delays of more than 20 seconds count as these. */
    private static final int STEPS = 1_000_000;

    private final int[] histogram = new int[STEPS];
    private long events;
    private long highest;

    @Override
    public void enter(ByteBuffer event) {
        long delay = Math.max(0, System.nanoTime() - Payload.stamp(event));
        histogram[(int) Math.min(STEPS - 1, delay / STEP)]++;
        highest = Math.max(highest, delay);
        events++;
    }

    @Override
    public long events() {
        return events;
    }

    /** Report the delays since the last report. */
    @Override
    public Map<String, Object> report() {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("events", events);
        report.put("p50_ms", quantile(0.50));
        report.put("p99_ms", quantile(0.99));
        report.put("max_ms", highest / 1e6);
        Arrays.fill(histogram, 0);
        events = 0;
        highest = 0;
        return report;
    }

    private double quantile(double part) {
        long left = (long) Math.ceil(part * events);
        for (int step = 0; step < STEPS && left > 0; step++) {
            left -= histogram[step];
            if (left <= 0) {
                return (step + 0.5) / STEPS_PER_MS;
            }
        }
        return 0;
    }
}
