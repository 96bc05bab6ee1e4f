import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/** Commands for many streams at once, as a program without Sluice would run them. */
final class Many {
    private final Session session;

    Many(Session session) {
        this.session = session;
    }

    /** An action on one stream. */
    private interface Deed {
        void to(String stream);
    }

    /** Create the streams and write {@code events=} of {@code size=} bytes to each. */
    Map<String, Object> fill(Command command) throws InterruptedException, ExecutionException {
        StreamConfiguration configuration =
                StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(1)).build();
        String scope = command.scope();
        long events = command.number("events");
        Payload payload = new Payload(Math.toIntExact(command.number("size")), 0);
        Busy.insist(() -> session.streams.createScope(scope));
        try (EventStreamClientFactory factory =
                EventStreamClientFactory.withScope(scope, session.config)) {
            return each(
                    command,
                    stream -> {
                        Busy.insist(
                                () -> session.streams.createStream(scope, stream, configuration));
                        try (EventStreamWriter<ByteBuffer> writer =
                                factory.createEventWriter(
                                        stream,
                                        new ByteBufferSerializer(),
                                        EventWriterConfig.builder().build())) {
                            for (long number = 0; number < events; number++) {
                                writer.writeEvent("k", payload.make("k", number, number));
                            }
                            writer.flush();
                        }
                    });
        }
    }

    /** Create the streams {@code prefix0}, {@code prefix1}, ..., of one segment each. */
    Map<String, Object> create(Command command) throws InterruptedException, ExecutionException {
        StreamConfiguration configuration =
                StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(1)).build();
        String scope = command.scope();
        Busy.insist(() -> session.streams.createScope(scope));
        return each(
                command,
                stream ->
                        Busy.insist(
                                () -> session.streams.createStream(scope, stream, configuration)));
    }

    /** Seal and delete the streams. */
    Map<String, Object> delete(Command command) throws InterruptedException, ExecutionException {
        String scope = command.scope();
        return each(
                command,
                stream -> {
                    session.streams.sealStream(scope, stream);
                    session.streams.deleteStream(scope, stream);
                });
    }

    /** Apply a deed to all, {@code threads=} at a time. Return the seconds until each was done. */
    private static Map<String, Object> each(Command command, Deed deed)
            throws InterruptedException, ExecutionException {
        int count = command.count("count", 1);
        String prefix = command.text("prefix");
        ExecutorService threads = Executors.newFixedThreadPool(command.count("threads", count));
        try {
            long start = System.nanoTime();
            List<Callable<Double>> deeds = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                String stream = prefix + i;
                deeds.add(
                        () -> {
                            deed.to(stream);
                            return (System.nanoTime() - start) / 1e9;
                        });
            }
            List<Double> seconds = new ArrayList<>();
            for (Future<Double> done : threads.invokeAll(deeds)) {
                seconds.add(done.get());
            }
            return Map.of("seconds", seconds);
        } finally {
            threads.shutdownNow();
        }
    }
}
