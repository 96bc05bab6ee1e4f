import io.pravega.client.EventStreamClientFactory;
import io.pravega.client.admin.ReaderGroupManager;
import io.pravega.client.stream.EventRead;
import io.pravega.client.stream.EventStreamReader;
import io.pravega.client.stream.ReaderConfig;
import io.pravega.client.stream.ReaderGroupConfig;
import io.pravega.client.stream.Stream;
import io.pravega.client.stream.StreamCut;
import io.pravega.client.stream.impl.ByteBufferSerializer;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;

/** A reader group that stays attached to a stream, and enters each event into an account. */
final class Follower {
    private static final long POLL_MILLIS = 200;

    private final Session session;
    private final Stream stream;
    private final String group = "follower-" + UUID.randomUUID();
    private final Account account;
    private final List<Thread> threads = new ArrayList<>();
    private final long started = System.nanoTime();
    private volatile Throwable failure;
    private volatile boolean giveUp;

    Follower(
            Session session,
            Stream stream,
            StreamCut from,
            int readers,
            long checkpointMillis,
            Account account) {
        this.session = session;
        this.stream = stream;
        this.account = account;
        ReaderGroupConfig config =
                ReaderGroupConfig.builder()
                        .stream(stream, from)
                        .automaticCheckpointIntervalMillis(checkpointMillis)
                        .groupRefreshTimeMillis(checkpointMillis)
                        .build();
        try (ReaderGroupManager groups =
                ReaderGroupManager.withScope(stream.getScope(), session.config)) {
            groups.createReaderGroup(group, config);
        }
        for (int i = 0; i < readers; i++) {
            String reader = "reader-" + i;
            Thread thread = new Thread(() -> follow(reader), reader);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
    }

    private void follow(String name) {
        try (EventStreamClientFactory factory =
                        EventStreamClientFactory.withScope(stream.getScope(), session.config);
                EventStreamReader<ByteBuffer> reader =
                        factory.createReader(
                                name,
                                group,
                                new ByteBufferSerializer(),
                                ReaderConfig.builder().build())) {
            while (!giveUp) {
                EventRead<ByteBuffer> read = reader.readNextEvent(POLL_MILLIS);
                if (read.getEvent() != null) {
                    // Enter it before the next read: until then no reader gets the segment's
                    // successors, so the order of entries is the order of reading.
                    synchronized (account) {
                        account.enter(read.getEvent());
                    }
                } else if (read.isReadCompleted()) {
                    return;
                }
            }
        } catch (RuntimeException e) {
            failure = e;
        }
    }

    /** Return the number of events read so far. */
    long events() {
        synchronized (account) {
            return account.events();
        }
    }

    /** Return what the account has. */
    Map<String, Object> report() {
        synchronized (account) {
            return account.report();
        }
    }

    /** Stop reading, wherever the readers are. */
    void leave() throws InterruptedException {
        giveUp = true;
        for (Thread thread : threads) {
            thread.join();
        }
        delete();
        if (failure != null) {
            throw new IllegalStateException("a reader failed", failure);
        }
    }

    /** Wait for the end of the stream, which must be sealed, and report the read events. */
    Map<String, Object> finish(long patienceSeconds) throws InterruptedException {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(patienceSeconds);
        for (Thread thread : threads) {
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            thread.join(Math.max(1, left));
        }
        boolean ended = threads.stream().noneMatch(Thread::isAlive);
        leave();
        if (!ended) {
            throw new IllegalStateException("no end of the stream; read " + account.report());
        }
        Map<String, Object> report = account.report();
        report.put("seconds", (System.nanoTime() - started) / 1e9);
        return report;
    }

    private void delete() {
        try (ReaderGroupManager groups =
                ReaderGroupManager.withScope(stream.getScope(), session.config)) {
            groups.deleteReaderGroup(group);
        }
    }
}
