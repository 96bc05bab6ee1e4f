import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventStreamWriter;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A writer at a steady rate, which measures the time to each acknowledgement. If it may outlive its
 * stream, it ends without an error once it cannot write any more.
 */
final class PacedWriter extends Thread {
    private static final int SAMPLES = 1 << 20;

    private final EventStreamClientFactory factory;
    private final EventStreamWriter<ByteBuffer> writer;
    private final Payload payload;
    private final List<String> keys;
    private final long first;
    private final long rate;
    private final boolean outlives;

    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong failed = new AtomicLong();
    private final long[] microseconds = new long[SAMPLES];
    private volatile boolean stopping;
    private volatile Throwable failure;
    private volatile long written;
    private volatile double seconds;

    PacedWriter(
            EventStreamClientFactory factory,
            EventStreamWriter<ByteBuffer> writer,
            Payload payload,
            List<String> keys,
            long first,
            long rate,
            boolean outlives) {
        super("paced-writer");
        this.factory = factory;
        this.writer = writer;
        this.payload = payload;
        this.keys = keys;
        this.first = first;
        this.rate = rate;
        this.outlives = outlives;
        setDaemon(true);
    }

    @Override
    public void run() {
        long start = System.nanoTime();
        try {
            while (!stopping) {
                long due = (System.nanoTime() - start) * rate / TimeUnit.SECONDS.toNanos(1);
                for (; written < due && !stopping; written++) {
                    writeOne(first + written);
                }
                TimeUnit.MILLISECONDS.sleep(1);
            }
            writer.flush();
        } catch (RuntimeException | InterruptedException e) {
            failure = e;
        }
        seconds = (System.nanoTime() - start) / 1e9;
    }

    private void writeOne(long number) {
        String key = keys.get((int) (number % keys.size()));
        ByteBuffer event = payload.make(key, number / keys.size(), number);
        long sent = System.nanoTime();
        writer.writeEvent(key, event)
                .whenComplete(
                        (nothing, error) -> {
                            if (error != null) {
                                failed.incrementAndGet();
                                return;
                            }
                            long index = acknowledged.getAndIncrement();
                            microseconds[(int) (index % SAMPLES)] =
                                    TimeUnit.NANOSECONDS.toMicros(System.nanoTime() - sent);
                        });
    }

    /** Stop and report. Latencies are those of the last {@code SAMPLES} acknowledgements. */
    Map<String, Object> finish() throws InterruptedException {
        stopping = true;
        join();
        if (!outlives) {
            writer.close();
        }
        factory.close();
        if (failure != null && !outlives) {
            throw new IllegalStateException("the writer failed", failure);
        }
        long[] sorted =
                Arrays.copyOf(microseconds, (int) Math.min(acknowledged.get(), SAMPLES));
        Arrays.sort(sorted);
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("events", written);
        report.put("acknowledged", acknowledged.get());
        report.put("failed", failed.get());
        report.put("seconds", seconds);
        report.put("p50_ms", quantile(sorted, 0.50));
        report.put("p99_ms", quantile(sorted, 0.99));
        report.put("max_ms", quantile(sorted, 1));
        return report;
    }

    private static double quantile(long[] sorted, double part) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[(int) Math.min(sorted.length - 1, (long) (part * sorted.length))] / 1e3;
    }
}
