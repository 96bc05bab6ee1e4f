import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/**
 * Copies of a stream by the official client, event by event, as a program without Sluice would make
 * them: the baseline of the benchmarks. There is one thread per segment. The routing keys are
 * invented, since the store does not keep them.
 */
final class Copies {
    private static final int BATCH_BYTES = 512 << 10;
    private static final int BATCH_EVENTS = 4000;
    private static final long TRANSACTION_MILLIS = 600_000;
    private static final ByteBufferSerializer SERIALIZER = new ByteBufferSerializer();

    private final Session session;
    private final SegmentLoop loop;

    Copies(Session session, Reads reads) {
        this.session = session;
        this.loop = new SegmentLoop(session, reads);
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
        try (EventStreamClientFactory factory =
                EventStreamClientFactory.withScope(scope, session.config)) {
            return loop.run(
                    scope,
                    command.text("source"),
                    command.count("threads", 2),
                    range -> copySegment(factory, range, target, mode));
        }
    }

    private void copySegment(
            EventStreamClientFactory factory, SegmentRange range, String target, String mode)
            throws Exception {
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
            throws Exception {
        try (EventStreamWriter<ByteBuffer> writer = writer(factory, target)) {
            Window window = new Window();
            loop.each(
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
            throws Exception {
        try (EventStreamWriter<ByteBuffer> writer = writer(factory, target)) {
            Window window = new Window();
            Batch batch = new Batch();
            loop.each(
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

    /** The events of one write. */
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
            throws Exception {
        try (TransactionalEventStreamWriter<ByteBuffer> writer =
                factory.createTransactionalEventWriter(
                        "copy-" + range.getSegmentId(),
                        target,
                        SERIALIZER,
                        EventWriterConfig.builder()
                                .transactionTimeoutTime(TRANSACTION_MILLIS)
                                .build())) {
            Transaction<ByteBuffer> transaction = writer.beginTxn();
            loop.each(range, event -> transaction.writeEvent(key, event));
            transaction.flush();
            transaction.commit();
            while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                Thread.sleep(10);
            }
        }
    }

    private static EventStreamWriter<ByteBuffer> writer(
            EventStreamClientFactory factory, String target) {
        return factory.createEventWriter(target, SERIALIZER, EventWriterConfig.builder().build());
    }
}
