import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import io.pravega.client.stream.impl.StreamSegments;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Commands that write the events of {@link Payload}, at full speed or at a rate. */
final class Writes {
    private final Session session;
    private final Map<Long, PacedWriter> running = new HashMap<>();
    private long started;

    Writes(Session session) {
        this.session = session;
    }

    /** Write a number of events as fast as the store takes them. */
    Map<String, Object> write(Command command) {
        long count = command.number("events");
        long first = command.number("first", 0);
        Events events = events(command);
        List<String> keys = keys(command);
        long bytes = 0;
        long start = System.nanoTime();
        try (EventStreamClientFactory factory = factory(command);
                EventStreamWriter<ByteBuffer> writer = writer(factory, command.stream())) {
            Window window = new Window();
            for (long number = first; number < first + count; number++) {
                String key = keys.get((int) (number % keys.size()));
                ByteBuffer event = events.make(key, number / keys.size(), number);
                int size = event.remaining();
                bytes += size;
                window.add(writer.writeEvent(key, event), size);
            }
            writer.flush();
            window.drain();
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        return Map.of("events", count, "bytes", bytes, "seconds", seconds);
    }

    /** Start a writer in the background and return its number. */
    Map<String, Object> start(Command command) {
        EventStreamClientFactory factory = factory(command);
        PacedWriter writer =
                new PacedWriter(
                        factory,
                        writer(factory, command.stream()),
                        payload(command),
                        keys(command),
                        command.number("first", 0),
                        command.number("rate"),
                        command.has("outlives"));
        writer.start();
        running.put(++started, writer);
        return Map.of("writer", started);
    }

    /** Stop a background writer, wait for its last acknowledgement and return its report. */
    Map<String, Object> stop(Command command) throws InterruptedException {
        PacedWriter writer = running.remove(command.number("writer"));
        if (writer == null) {
            throw new IllegalArgumentException("no such writer");
        }
        return writer.finish();
    }

    static Events events(Command command) {
        int size = Math.toIntExact(command.number("size"));
        long seed = command.number("seed", 0);
        return switch (command.text("kind", "padded")) {
            case "padded" -> new Payload(size, seed);
            case "orders" -> new Orders(size, seed);
            case "mixed" -> new Mixed(size, seed);
            default -> throw new IllegalArgumentException("kind is padded, orders or mixed");
        };
    }

    private static Payload payload(Command command) {
        int size = Math.toIntExact(command.number("size"));
        return new Payload(size, command.number("seed", 0), command.has("stamped"));
    }

    private EventStreamClientFactory factory(Command command) {
        return EventStreamClientFactory.withScope(command.scope(), session.config);
    }

    private static EventStreamWriter<ByteBuffer> writer(
            EventStreamClientFactory factory, String stream) {
        // Events of more than 8 MiB are written to a segment of their own, which is then merged.
        EventWriterConfig config = EventWriterConfig.builder().enableLargeEvents(true).build();
        return factory.createEventWriter(stream, new ByteBufferSerializer(), config);
    }

    /** Return the routing keys. If segments are named, the keys fall into these. */
    List<String> keys(Command command) {
        int count = command.count("keys", 1);
        long seed = command.number("seed", 0);
        List<Long> wanted = command.numbers("segments");
        StreamSegments layout =
                wanted.isEmpty()
                        ? null
                        : session.controller
                                .getCurrentSegments(command.scope(), command.stream())
                                .join();
        List<String> keys = new ArrayList<>(count);
        for (int i = 0; keys.size() < count; i++) {
            String key = (seed == 0 ? "k" : "s" + seed + "k") + i;
            if (layout == null || wanted.contains(layout.getSegmentForKey(key).getSegmentId())) {
                keys.add(key);
            } else if (i > 100_000 * (keys.size() + 1)) {
                throw new IllegalArgumentException("no keys fall into segments " + wanted);
            }
        }
        return keys;
    }
}
