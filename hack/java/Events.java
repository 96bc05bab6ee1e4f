import java.nio.ByteBuffer;

/** Makes events by their numbers. */
interface Events {
    /** Makes one event: the {@code sequence}th of its key, the {@code number}th in all. */
    ByteBuffer make(String key, long sequence, long number);
}
