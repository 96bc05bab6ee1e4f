import io.pravega.client.control.impl.ControllerFailureException;
import java.util.function.Supplier;

/**
 * Patience with a busy controller. It answers a request to create a scope, or to create or to
 * update a stream, with FAILURE and without a reason, and the same request succeeds a little later:
 * its connection to the segment store of its own tables broke, say. A request that was carried out
 * nevertheless is no error either, so only requests that may be repeated belong here.
 */
final class Busy {
    private static final int TRIES = 5;
    private static final long PAUSE_MILLIS = 200;

    private Busy() {}

    static <T> T insist(Supplier<T> request) {
        for (int tries = 1; ; tries++) {
            try {
                return request.get();
            } catch (ControllerFailureException failure) {
                if (tries == TRIES) {
                    throw failure;
                }
                pause(tries * PAUSE_MILLIS);
            }
        }
    }

    private static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(interrupted);
        }
    }
}
