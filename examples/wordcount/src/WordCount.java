import io.pravega.client.BatchClientFactory;
import io.pravega.client.ClientConfig;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.EventStreamWriter;
import io.pravega.client.stream.EventWriterConfig;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.ScalingPolicy;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamConfiguration;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.InetAddress;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * Counts the words of a stream, as a small streaming application does: it reads lines with a reader
 * group, writes {@code word count} to another stream, and keeps what it needs for that in streams
 * that it makes itself, under a prefix:
 *
 * <ul>
 *   <li>{@code state}: each count, from which it goes on when it starts again;
 *   <li>{@code watermarks}: each second, how far it has come;
 *   <li>{@code metrics}: each second, how many lines that was;
 *   <li>{@code summary-INSTANCE}: made when an instance stops, what it did.
 * </ul>
 *
 * <p>Told to stop by SIGTERM, it counts every line once. Killed, it counts those again that it read
 * after the group's last checkpoint.
 *
 * <p>Environment: PRAVEGA_URI, SCOPE, INPUT and OUTPUT, which have to exist, PREFIX, and
 * FAREWELL_SECONDS, for which it waits before it sums up (0).
 */
public final class WordCount {
    private static final UTF8StringSerializer TEXT = new UTF8StringSerializer();
    private static final Pattern WORDS = Pattern.compile("[^\\p{L}\\p{N}]+");
    private static final long POLL_MILLIS = 100;
    private static final long REPORT_NANOS = TimeUnit.SECONDS.toNanos(1);
    private static final long CHECKPOINT_MILLIS = 5_000;
    private static final long ACKNOWLEDGED_SECONDS = 30;
    private static final long STOP_MILLIS = 28_000;

    private final ClientConfig config =
            ClientConfig.builder().controllerURI(URI.create(setting("PRAVEGA_URI"))).build();
    private final String scope = setting("SCOPE");
    private final String prefix = setting("PREFIX");
    private final String instance;
    private final Map<String, Long> counts = new HashMap<>();
    private final List<CompletableFuture<Void>> unacknowledged = new ArrayList<>();
    private volatile boolean stopping;
    private long lines;

    private WordCount(String instance) {
        this.instance = instance;
    }

    /** Counts until SIGTERM. */
    public static void main(String[] none) throws Exception {
        WordCount application = new WordCount(InetAddress.getLocalHost().getHostName());
        Thread main = Thread.currentThread();
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    application.stopping = true;
                                    try {
                                        main.join(STOP_MILLIS);
                                    } catch (InterruptedException e) {
                                        Thread.currentThread().interrupt();
                                    }
                                }));
        int code = 0;
        try (StreamManager streams = StreamManager.create(application.config)) {
            try {
                application.run(streams);
            } catch (Exception e) {
                System.out.println("stopped by " + e);
                code = 1;
            }
            application.sumUp(streams);
        } catch (Exception e) {
            e.printStackTrace();
            code = 1;
        }
        Runtime.getRuntime().halt(code); // the client's threads would keep the JVM alive
    }

    private void run(StreamManager streams) throws Exception {
        for (String helper : List.of("state", "watermarks", "metrics")) {
            create(streams, helper);
        }
        restore();
        try (EventStreamClientFactory clients = EventStreamClientFactory.withScope(scope, config);
                ReaderGroupManager groups = ReaderGroupManager.withScope(scope, config)) {
            count(clients, group(groups));
        }
    }

    private void count(EventStreamClientFactory clients, ReaderGroup group) throws Exception {
        EventStreamWriter<String> output = writer(clients, setting("OUTPUT"));
        EventStreamWriter<String> state = writer(clients, prefix + "state");
        EventStreamWriter<String> watermarks = writer(clients, prefix + "watermarks");
        EventStreamWriter<String> metrics = writer(clients, prefix + "metrics");
        // Writers are left to the end of the process: to close one whose stream is gone can hang.
        try (EventStreamReader<String> reader =
                clients.createReader(
                        instance, group.getGroupName(), TEXT, ReaderConfig.builder().build())) {
            System.out.println("counting");
            long reported = System.nanoTime();
            while (!stopping) {
                String line = reader.readNextEvent(POLL_MILLIS).getEvent();
                if (line != null) {
                    lines++;
                    for (String word : WORDS.split(line)) {
                        String counted = word + ' ' + counts.merge(word, 1L, Long::sum);
                        unacknowledged.add(output.writeEvent(word, counted));
                        unacknowledged.add(state.writeEvent(counted));
                    }
                }
                if (System.nanoTime() - reported > REPORT_NANOS) {
                    reported = System.nanoTime();
                    unacknowledged.add(watermarks.writeEvent("" + System.currentTimeMillis()));
                    unacknowledged.add(metrics.writeEvent("" + lines));
                    acknowledge();
                }
            }
            acknowledge();
        }
        System.out.println("stopped after " + lines + " lines");
    }

    /** Waits until all that was written is safe; only then the group may forget what was read. */
    private void acknowledge() throws Exception {
        for (CompletableFuture<Void> one : unacknowledged) {
            one.get(ACKNOWLEDGED_SECONDS, TimeUnit.SECONDS);
        }
        unacknowledged.clear();
    }

    /** Leaves a last stream behind, as applications do that flush and compact when they end. */
    private void sumUp(StreamManager streams) throws Exception {
        TimeUnit.SECONDS.sleep(Long.parseLong(setting("FAREWELL_SECONDS", "0")));
        String summary = create(streams, "summary-" + instance);
        try (EventStreamClientFactory clients = EventStreamClientFactory.withScope(scope, config);
                EventStreamWriter<String> writer = writer(clients, summary)) {
            writer.writeEvent(lines + " lines, " + counts.size() + " words").get();
        }
        System.out.println("summed up in " + summary);
    }

    private String create(StreamManager streams, String helper) {
        streams.createStream(
                scope,
                prefix + helper,
                StreamConfiguration.builder().scalingPolicy(ScalingPolicy.fixed(1)).build());
        return prefix + helper;
    }

    /** Takes the counts up where an earlier instance stopped. */
    private void restore() {
        Stream state = Stream.of(scope, prefix + "state");
        try (BatchClientFactory factory = BatchClientFactory.withScope(scope, config)) {
            var ranges =
                    factory.getSegments(state, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED)
                            .getIterator();
            while (ranges.hasNext()) {
                SegmentRange range = ranges.next();
                try (SegmentIterator<String> events = factory.readSegment(range, TEXT)) {
                    while (events.hasNext()) {
                        String[] counted = events.next().split(" ");
                        counts.put(counted[0], Long.valueOf(counted[1]));
                    }
                }
            }
        }
        System.out.println("restored " + counts.size() + " words");
    }

    /** Gives the reader group, without readers of instances that were killed. */
    private ReaderGroup group(ReaderGroupManager groups) {
        String name = prefix + "readers";
        groups.createReaderGroup(
                name,
                ReaderGroupConfig.builder()
                        .stream(Stream.of(scope, setting("INPUT")))
                        .automaticCheckpointIntervalMillis(CHECKPOINT_MILLIS)
                        .build());
        ReaderGroup group = groups.getReaderGroup(name);
        group.getOnlineReaders().forEach(reader -> group.readerOffline(reader, null));
        return group;
    }

    private static EventStreamWriter<String> writer(
            EventStreamClientFactory clients, String stream) {
        return clients.createEventWriter(stream, TEXT, EventWriterConfig.builder().build());
    }

    private static String setting(String name) {
        String value = System.getenv(name);
        if (value == null) {
            throw new IllegalArgumentException("set " + name);
        }
        return value;
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }
}
