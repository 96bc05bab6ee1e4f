import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;

/** Bounds the bytes written but not yet acknowledged: a fast writer can fill a store's cache. */
final class Window {
    private static final long LIMIT = 16 << 20;

    private final ArrayDeque<Entry> pending = new ArrayDeque<>();
    private long inFlight;

    private record Entry(CompletableFuture<Void> acknowledged, int bytes) {}

    /** Adds a write, after waiting for the oldest ones if there are too many bytes. */
    void add(CompletableFuture<Void> acknowledged, int bytes) {
        pending.add(new Entry(acknowledged, bytes));
        inFlight += bytes;
        while (inFlight > LIMIT) {
            awaitOldest();
        }
    }

    /** Waits for all writes. */
    void drain() {
        while (!pending.isEmpty()) {
            awaitOldest();
        }
    }

    private void awaitOldest() {
        Entry oldest = pending.remove();
        oldest.acknowledged.join();
        inFlight -= oldest.bytes;
    }
}
