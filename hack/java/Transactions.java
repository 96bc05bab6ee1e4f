import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Transaction;
import io.pravega.client.stream.TransactionalEventStreamWriter;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;

/** The command that writes the events of {@link Payload} in transactions, one after the other. */
final class Transactions {
    private static final long LEASE_MILLIS = 600_000;

    private final Session session;
    private final Writes writes;

    Transactions(Session session, Writes writes) {
        this.session = session;
        this.writes = writes;
    }

    /** Write a number of events, in as many transactions as are asked for. */
    Map<String, Object> write(Command command) throws Exception {
        long count = command.number("events");
        long first = command.number("first", 0);
        long transactions = command.number("transactions");
        Events events = Writes.events(command);
        List<String> keys = writes.keys(command);
        EventWriterConfig config =
                EventWriterConfig.builder().transactionTimeoutTime(LEASE_MILLIS).build();
        long bytes = 0;
        long start = System.nanoTime();
        try (EventStreamClientFactory factory =
                        EventStreamClientFactory.withScope(command.scope(), session.config);
                TransactionalEventStreamWriter<ByteBuffer> writer =
                        factory.createTransactionalEventWriter(
                                command.stream(), new ByteBufferSerializer(), config)) {
            for (long number = 0; number < transactions; number++) {
                Transaction<ByteBuffer> transaction = writer.beginTxn();
                long end = first + count * (number + 1) / transactions;
                for (long i = first + count * number / transactions; i < end; i++) {
                    String key = keys.get((int) (i % keys.size()));
                    ByteBuffer event = events.make(key, i / keys.size(), i);
                    bytes += event.remaining();
                    transaction.writeEvent(key, event);
                }
                transaction.commit();
                while (transaction.checkStatus() != Transaction.Status.COMMITTED) {
                    Thread.sleep(5);
                }
            }
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        return Map.of("events", count, "bytes", bytes, "seconds", seconds);
    }
}
