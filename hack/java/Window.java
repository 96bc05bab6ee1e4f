import java.util.ArrayDeque;
import java.util.concurrent.CompletableFuture;

/** A bound of the unacknowledged bytes, because a fast writer can fill a store's cache. */
final class Window {
    private static final long LIMIT = 16 << 20;

    private final ArrayDeque<Entry> pending = new ArrayDeque<>();
    private long inFlight;

    private record Entry(CompletableFuture<Void> acknowledged, int bytes) {}

    /** Add a write, and wait for the oldest writes while there are too many bytes. */
    void add(CompletableFuture<Void> acknowledged, int bytes) {
        pending.add(new Entry(acknowledged, bytes));
        inFlight += bytes;
        while (inFlight > LIMIT) {
            awaitOldest();
        }
    }

    /** Wait for all writes. */
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
