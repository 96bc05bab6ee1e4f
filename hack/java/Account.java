import java.nio.ByteBuffer;
import java.util.Map;

/** What is noted of the events that readers read. Calls come one at a time. */
interface Account {
    /** Take in an event. */
    void enter(ByteBuffer event);

    /** Return the number of events so far. */
    long events();

    /** Return all that was noted. */
    Map<String, Object> report();
}
