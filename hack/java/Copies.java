import com.sun.management.OperatingSystemMXBean;
import io.pravega.client.BatchClientFactory;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.TxnFailedException;
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

/**
 * Copies a stream with the official client, event by event: what one would write without Sluice,
 * and so the baseline of the benchmarks. One thread per segment, routing keys made up, since the
 * store does not keep them.
 */
final class Copies {
    private static final int BATCH_BYTES = 512 << 10;
    private static final int BATCH_EVENTS = 4000;
    private static final long TRANSACTION_MILLIS = 600_000;
    private static final ByteBufferSerializer SERIALIZER = new ByteBufferSerializer();

    private final Session session;
    private final Reads reads;
    private final LongAdder events = new LongAdder();
    private final LongAdder bytes = new LongAdder();

    Copies(Session session, Reads reads) {
        this.session = session;
        this.reads = reads;
    }

    /** Takes one event after the other. */
    private interface Sink {
        void accept(ByteBuffer event) throws TxnFailedException;
    }

    Map<String, Object> copy(Command command) throws InterruptedException, ExecutionException {
        String scope = command.scope();
        String target = command.text("target");
        String mode = command.text("mode");
        session.streams.createStream(
                scope,
                target,
                StreamConfiguration.builder()
                        .scalingPolicy(ScalingPolicy.fixed(command.count("segments", 4)))
                        .build());
        List<SegmentRange> ranges =
                reads.ranges(
                        Stream.of(scope, command.text("source")),
                        StreamCut.UNBOUNDED,
                        StreamCut.UNBOUNDED);
        events.reset();
        bytes.reset();
        ExecutorService threads = Executors.newFixedThreadPool(command.count("threads", 2));
        long start = System.nanoTime();
        long cpu = cpuNanos();
        try (EventStreamClientFactory factory =
                EventStreamClientFactory.withScope(scope, session.config)) {
            List<Future<?>> copies = new ArrayList<>();
            for (SegmentRange range : ranges) {
                copies.add(
                        threads.submit(
                                () -> {
                                    copySegment(factory, range, target, mode);
                                    return null;
                                }));
            }
            for (Future<?> copy : copies) {
                copy.get();
            }
        } finally {
            threads.shutdownNow();
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

    private void copySegment(
            EventStreamClientFactory factory, SegmentRange range, String target, String mode)
            throws TxnFailedException, InterruptedException {
        String key = "segment-" + range.getSegmentId();
        switch (mode) {
            case "events" -> copyEvents(factory, range, target, key);
            case "batches" -> copyBatches(factory, range, target, key);
            case "txn" -> copyInTransaction(factory, range, target, key);
            default -> throw new IllegalArgumentException("mode is events, batches or txn");
        }
    }

    private void copyEvents(
            EventStreamClientFactory factory, SegmentRange range, String target, String key)
            throws TxnFailedException {
        try (EventStreamWriter<ByteBuffer> writer = writer(factory, target)) {
            Window window = new Window();
            each(
                    range,
                    event -> {
                        int size = event.remaining();
                        window.add(writer.writeEvent(key, event), size);
                    });
            writer.flush();
            window.drain();
        }
    }

    private void copyBatches(
            EventStreamClientFactory factory, SegmentRange range, String target, String key)
            throws TxnFailedException {
        try (EventStreamWriter<ByteBuffer> writer = writer(factory, target)) {
            Window window = new Window();
            Batch batch = new Batch();
            each(
                    range,
                    event -> {
                        batch.add(event);
                        if (batch.isFull()) {
                            batch.send(writer, window, key);
                        }
                    });
            batch.send(writer, window, key);
            writer.flush();
            window.drain();
        }
    }

    /** Events that one write carries. */
    private static final class Batch {
        private List<ByteBuffer> events = new ArrayList<>();
        private int bytes;

        void add(ByteBuffer event) {
            events.add(event);
            bytes += event.remaining() + Long.BYTES;
        }

        boolean isFull() {
            return bytes >= BATCH_BYTES || events.size() >= BATCH_EVENTS;
        }

        void send(EventStreamWriter<ByteBuffer> writer, Window window, String key) {
            if (!events.isEmpty()) {
                window.add(writer.writeEvents(key, events), bytes);
                events = new ArrayList<>();
                bytes = 0;
            }
        }
    }

    private void copyInTransaction(
            EventStreamClientFactory factory, SegmentRange range, String target, String key)
            throws TxnFailedException, InterruptedException {
        try (TransactionalEventStreamWriter<ByteBuffer> writer =
                factory.createTransactionalEventWriter(
                        "copy-" + range.getSegmentId(),
                        target,
                        SERIALIZER,
                        EventWriterConfig.builder()
                                .transactionTimeoutTime(TRANSACTION_MILLIS)
                                .build())) {
            Transaction<ByteBuffer> transaction = writer.beginTxn();
            each(range, event -> transaction.writeEvent(key, event));
            transaction.flush();
            transaction.commit();
            while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                Thread.sleep(10);
            }
        }
    }

    private void each(SegmentRange range, Sink sink) throws TxnFailedException {
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

    private static EventStreamWriter<ByteBuffer> writer(
            EventStreamClientFactory factory, String target) {
        return factory.createEventWriter(target, SERIALIZER, EventWriterConfig.builder().build());
    }

    private static long cpuNanos() {
        return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class)
                .getProcessCpuTime();
    }
}
