import java.nio.ByteBuffer;

/** A maker of events from their numbers. */
interface Events {
    /** Make one event: the {@code sequence}th of its key, the {@code number}th in all. */
    ByteBuffer make(String key, long sequence, long number);
}
