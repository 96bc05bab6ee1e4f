import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroup;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Reader groups that outlive a command, as an application's do. */
final class Groups {
    private static final long POLL_MILLIS = 200;

    private final Session session;

    /** For each group, the reader that stays online between commands, and its client. */
    private final Map<String, List<AutoCloseable>> online = new ConcurrentHashMap<>();

    Groups(Session session) {
        this.session = session;
    }

    /** Create a group that reads {@code streams=a,b} from their heads, or from a cut. */
    Map<String, Object> create(Command command) {
        ReaderGroupConfig.ReaderGroupConfigBuilder config =
                ReaderGroupConfig.builder()
                        .automaticCheckpointIntervalMillis(command.number("checkpoint", 500))
                        .groupRefreshTimeMillis(command.number("checkpoint", 500));
        for (String stream : command.text("streams").split(",")) {
            StreamCut start = StreamCut.UNBOUNDED;
            if (command.has("cut")) {
                start = StreamCut.from(command.text("cut"));
            }
            config.stream(Stream.of(command.scope(), stream), start);
        }
        try (ReaderGroupManager groups = manager(command)) {
            return Map.of(
                    "changed", groups.createReaderGroup(command.text("group"), config.build()));
        }
    }

    Map<String, Object> delete(Command command) {
        try (ReaderGroupManager groups = manager(command)) {
            groups.deleteReaderGroup(command.text("group"));
        }
        return Map.of("changed", true);
    }

    /** Return the group's position in each stream as the text of a cut, as the client sees it. */
    Map<String, Object> cuts(Command command) {
        Map<String, Object> cuts = new TreeMap<>();
        try (ReaderGroupManager groups = manager(command);
                ReaderGroup group = groups.getReaderGroup(command.text("group"))) {
            group.getStreamCuts()
                    .forEach((stream, cut) -> cuts.put(stream.getScopedName(), cut.asText()));
        }
        return Map.of("cuts", cuts);
    }

    /**
     * Read with a new {@code reader} of a group: at most {@code events}, or until none came for {@code
     * quiet} milliseconds. Each takes {@code pace} milliseconds. With {@code stay} the reader stays
     * online.
     */
    Map<String, Object> read(Command command) throws Exception {
        String group = command.text("group");
        String name = command.text("reader", "reader");
        List<AutoCloseable> opened = new ArrayList<>();
        EventStreamClientFactory factory =
                EventStreamClientFactory.withScope(command.scope(), session.config);
        opened.add(factory);
        EventStreamReader<ByteBuffer> reader =
                factory.createReader(
                        name,
                        group,
                        new ByteBufferSerializer(),
                        ReaderConfig.builder().build());
        opened.add(reader);
        if (command.has("stay")) {
            online.put(group, opened);
            return readAll(command, reader);
        }
        try {
            return readAll(command, reader);
        } finally {
            close(opened);
        }
    }

    /** Remove the reader that stayed online from its group. */
    Map<String, Object> leave(Command command) throws Exception {
        close(online.remove(command.text("group")));
        return Map.of("changed", true);
    }

    private static void close(List<AutoCloseable> opened) throws Exception {
        for (int i = opened.size() - 1; i >= 0; i--) {
            opened.get(i).close();
        }
    }

    private static Map<String, Object> readAll(
            Command command, EventStreamReader<ByteBuffer> reader) throws InterruptedException {
        long most = command.number("events", Long.MAX_VALUE);
        long quiet = TimeUnit.MILLISECONDS.toNanos(command.number("quiet", 60_000));
        long pace = command.number("pace", 0);
        Ledger ledger = new Ledger();
        long start = System.nanoTime();
        long lastEvent = start;
        for (long read = 0; read < most && System.nanoTime() - lastEvent < quiet; ) {
            EventRead<ByteBuffer> event = reader.readNextEvent(POLL_MILLIS);
            if (event.getEvent() != null) {
                ledger.enter(event.getEvent());
                lastEvent = System.nanoTime();
                read++;
                Thread.sleep(pace);
            }
        }
        Map<String, Object> report = ledger.report();
        report.put("seconds", (System.nanoTime() - start) / 1e9);
        return report;
    }

    private ReaderGroupManager manager(Command command) {
        return ReaderGroupManager.withScope(command.scope(), session.config);
    }
}
