import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.BatchClientFactory;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.LongAdder;

/** A loop over a stream by the official client, event by event, with one thread per segment. */
final class SegmentLoop {
    private static final ByteBufferSerializer SERIALIZER = new ByteBufferSerializer();

    private final Session session;
    private final Reads reads;
    private final LongAdder events = new LongAdder();
    private final LongAdder bytes = new LongAdder();

    SegmentLoop(Session session, Reads reads) {
        this.session = session;
        this.reads = reads;
    }

    /** A consumer of one event after the other. */
    interface Sink {
        void accept(ByteBuffer event) throws Exception;
    }

    /** The work on one segment. */
    interface Work {
        void accept(SegmentRange range) throws Exception;
    }

    /** Work on each segment, {@code threads} at a time, and report the cost. */
    Map<String, Object> run(String scope, String source, int threads, Work work)
            throws InterruptedException, ExecutionException {
        List<SegmentRange> ranges =
                reads.ranges(Stream.of(scope, source), StreamCut.UNBOUNDED, StreamCut.UNBOUNDED);
        events.reset();
        bytes.reset();
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        long start = System.nanoTime();
        long cpu = cpuNanos();
        try {
            List<Future<?>> running = new ArrayList<>();
            for (SegmentRange range : ranges) {
                running.add(
                        pool.submit(
                                () -> {
                                    work.accept(range);
                                    return null;
                                }));
            }
            for (Future<?> one : running) {
                one.get();
            }
        } finally {
            pool.shutdownNow();
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("events", events.sum());
        report.put("bytes", bytes.sum());
        report.put("seconds", seconds);
        report.put("megabytes_per_second", bytes.sum() / 1e6 / seconds);
        report.put("cpu_seconds", (cpuNanos() - cpu) / 1e9);
        return report;
    }

    /** Pass a segment's events to a sink, in order. */
    void each(SegmentRange range, Sink sink) throws Exception {
        try (BatchClientFactory factory =
                        BatchClientFactory.withScope(range.getScope(), session.config);
                SegmentIterator<ByteBuffer> iterator = factory.readSegment(range, SERIALIZER)) {
            while (iterator.hasNext()) {
                ByteBuffer event = iterator.next();
                events.increment();
                bytes.add(event.remaining());
                sink.accept(event);
            }
        }
    }

    private static long cpuNanos() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class)
                .getProcessCpuTime();
    }
}
