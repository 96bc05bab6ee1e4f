import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.Map;

/** The loop that an application would use to follow a stream: read an event, write it by its key. */
final class Relay implements Account, AutoCloseable {
    private final EventStreamClientFactory factory;
    private final EventStreamWriter<ByteBuffer> writer;
    private long events;

    Relay(Session session, Stream target) {
        factory = EventStreamClientFactory.withScope(target.getScope(), session.config);
        writer =
                factory.createEventWriter(
                        target.getStreamName(),
                        new ByteBufferSerializer(),
                        EventWriterConfig.builder().build());
    }

    @Override
    public void enter(ByteBuffer event) {
        writer.writeEvent(Payload.label(event).key(), event.duplicate());
        events++;
    }

    @Override
    public long events() {
        return events;
    }

    @Override
    public Map<String, Object> report() {
        return Map.of("events", events);
    }

    @Override
    public void close() {
        writer.close();
        factory.close();
    }
}
