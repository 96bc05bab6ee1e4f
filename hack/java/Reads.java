import io.pravega.client.BatchClientFactory;
import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.admin.StreamInfo;
import io.pravega.client.batch.SegmentIterator;
import io.pravega.client.batch.SegmentRange;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** Reads like those of any consumer. */
final class Reads {
    private static final long POLL_MILLIS = 200;

    /**
     * Readers pass from one epoch to the next only at a checkpoint of their group. By default there
     * is one every 30 seconds.
     */
    private static final long CHECKPOINT_MILLIS = 500;

    private final Session session;
    private final Map<Long, Follower> running = new HashMap<>();
    private final Map<Long, Relay> relays = new HashMap<>();
    private long started;

    Reads(Session session) {
        this.session = session;
    }

    /** Read from the head to the present tail, with a reader group made for it. */
    Map<String, Object> read(Command command) {
        long patience = TimeUnit.SECONDS.toNanos(command.number("patience", 60));
        Stream stream = Stream.of(command.scope(), command.stream());
        StreamCut tail = tail(stream);
        long bytes =
                ranges(stream, StreamCut.UNBOUNDED, tail).stream()
                        .mapToLong(range -> range.getEndOffset() - range.getStartOffset())
                        .sum();
        Ledger ledger = new Ledger();
        long start = System.nanoTime();
        if (bytes > 0) {
            drain(stream, tail, bytes, ledger, patience);
        }
        Map<String, Object> report = ledger.report();
        report.put("seconds", (System.nanoTime() - start) / 1e9);
        return report;
    }

    /** Attach a reader group to a stream, from its head on, and return the group's number. */
    Map<String, Object> start(Command command) {
        Stream stream = Stream.of(command.scope(), command.stream());
        return attach(stream, StreamCut.UNBOUNDED, command, new Ledger());
    }

    /** Attach a reader group to a stream of stamped events, from its tail on, as {@code start}. */
    Map<String, Object> startDelays(Command command) {
        Stream stream = Stream.of(command.scope(), command.stream());
        return attach(stream, tail(stream), command, new Delays());
    }

    /** Begin to write each event that comes in a stream to another one. Return as {@code start}. */
    Map<String, Object> startRelay(Command command) {
        Stream stream = Stream.of(command.scope(), command.stream());
        Relay relay = new Relay(session, Stream.of(command.scope(), command.text("target")));
        Map<String, Object> answer = attach(stream, tail(stream), command, relay);
        relays.put(started, relay);
        return answer;
    }

    private Map<String, Object> attach(
            Stream stream, StreamCut from, Command command, Account account) {
        int readers = command.count("readers", 1);
        Follower follower =
                new Follower(session, stream, from, readers, CHECKPOINT_MILLIS, account);
        running.put(++started, follower);
        return Map.of("readers", started);
    }

    /** Return the number of events that a reader group has read. */
    Map<String, Object> soFar(Command command) {
        return Map.of("events", running.get(command.number("readers")).events());
    }

    /** Return the account of a reader group; that of delays begins anew. */
    Map<String, Object> account(Command command) {
        return running.get(command.number("readers")).report();
    }

    /** Take a reader group away from its stream. */
    Map<String, Object> leave(Command command) throws InterruptedException {
        long number = command.number("readers");
        running.remove(number).leave();
        Relay relay = relays.remove(number);
        if (relay != null) {
            relay.close();
        }
        return Map.of();
    }

    /** Wait until a reader group has read a stream, which must be sealed, to its end. */
    Map<String, Object> stop(Command command) throws InterruptedException {
        Follower follower = running.remove(command.number("readers"));
        if (follower == null) {
            throw new IllegalArgumentException("no such readers");
        }
        return follower.finish(command.number("patience", 60));
    }

    /** Count the events and bytes that a new consumer finds now, without a reader group. */
    Map<String, Object> visible(Command command) {
        Stream stream = Stream.of(command.scope(), command.stream());
        long events = 0;
        long bytes = 0;
        try (BatchClientFactory factory =
                BatchClientFactory.withScope(stream.getScope(), session.config)) {
            for (SegmentRange range : ranges(stream, StreamCut.UNBOUNDED, StreamCut.UNBOUNDED)) {
                bytes += range.getEndOffset() - range.getStartOffset();
                try (SegmentIterator<ByteBuffer> iterator =
                        factory.readSegment(range, new ByteBufferSerializer())) {
                    for (; iterator.hasNext(); iterator.next()) {
                        events++;
                    }
                }
            }
        }
        return Map.of("events", events, "bytes", bytes);
    }

    /** Return the non-empty parts of segments between two cuts. */
    List<SegmentRange> ranges(Stream stream, StreamCut from, StreamCut to) {
        List<SegmentRange> ranges = new ArrayList<>();
        try (BatchClientFactory factory =
                BatchClientFactory.withScope(stream.getScope(), session.config)) {
            factory.getSegments(stream, from, to)
                    .getIterator()
                    .forEachRemaining(
                            range -> {
                                if (range.getEndOffset() > range.getStartOffset()) {
                                    ranges.add(range);
                                }
                            });
        }
        return ranges;
    }

    /** Return the present tail. The cut of a sealed stream is empty and would not be accepted. */
    private StreamCut tail(Stream stream) {
        StreamInfo info =
                session.streams.fetchStreamInfo(stream.getScope(), stream.getStreamName()).join();
        return info.isSealed() ? StreamCut.UNBOUNDED : info.getTailStreamCut();
    }

    private void drain(
            Stream stream, StreamCut tail, long bytes, Ledger ledger, long patience) {
        String group = "witness-" + UUID.randomUUID();
        ReaderGroupConfig config =
                ReaderGroupConfig.builder()
                        .stream(stream, StreamCut.UNBOUNDED, tail)
                        .automaticCheckpointIntervalMillis(CHECKPOINT_MILLIS)
                        .groupRefreshTimeMillis(CHECKPOINT_MILLIS)
                        .build();
        try (ReaderGroupManager groups =
                ReaderGroupManager.withScope(stream.getScope(), session.config)) {
            groups.createReaderGroup(group, config);
            try {
                readAll(stream.getScope(), group, bytes, ledger, patience);
            } finally {
                groups.deleteReaderGroup(group);
            }
        }
    }

    /**
     * Read until all bytes came and then no further event. If a cut in the middle of a segment
     * bounds the group, its reader does not report the end.
     */
    private void readAll(String scope, String group, long bytes, Ledger ledger, long patience) {
        try (EventStreamClientFactory factory =
                        EventStreamClientFactory.withScope(scope, session.config);
                EventStreamReader<ByteBuffer> reader =
                        factory.createReader(
                                "witness",
                                group,
                                new ByteBufferSerializer(),
                                ReaderConfig.builder().build())) {
            long lastEvent = System.nanoTime();
            while (true) {
                EventRead<ByteBuffer> read = reader.readNextEvent(POLL_MILLIS);
                if (read.getEvent() != null) {
                    ledger.enter(read.getEvent());
                    lastEvent = System.nanoTime();
                } else if (read.isReadCompleted() || ledger.storedBytes() >= bytes) {
                    return;
                } else if (System.nanoTime() - lastEvent > patience) {
                    throw new IllegalStateException("no event and no end; read " + ledger.report());
                }
            }
        }
    }
}
