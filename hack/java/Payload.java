import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.SplittableRandom;

/**
 * The events of our tests: {@code key|sequence in the key|global number|padding}.
 *
 * <p>Event {@code g} of {@code n} keys belongs to key {@code g % n} and is its {@code g / n}th. So
 * a run that starts at the number where an earlier run ended continues every key.
 *
 * <p>Stamped events have the time at which they are made as well: {@code key|sequence|number|time|}.
 */
final class Payload implements Events {
    private static final int SHIFTS = 61;

    private final int size;
    private final byte[] filler;
    private final boolean stamped;

    Payload(int size, long seed) {
        this(size, seed, false);
    }

    Payload(int size, long seed, boolean stamped) {
        this.size = size;
        this.stamped = stamped;
        this.filler = new byte[size + SHIFTS];
        SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < filler.length; i++) {
            filler[i] = (byte) ('a' + random.nextInt(26));
        }
    }

    /** Make one event, whose padding also depends on its number. */
    @Override
    public ByteBuffer make(String key, long sequence, long number) {
        String time = stamped ? System.nanoTime() + "|" : "";
        byte[] header =
                (key + '|' + sequence + '|' + number + '|' + time).getBytes(StandardCharsets.UTF_8);
        if (header.length > size) {
            throw new IllegalArgumentException(
                    "size " + size + " does not hold the header of " + header.length + " bytes");
        }
        byte[] event = new byte[size];
        System.arraycopy(header, 0, event, 0, header.length);
        int shift = (int) (number % SHIFTS);
        System.arraycopy(filler, shift, event, header.length, size - header.length);
        return ByteBuffer.wrap(event);
    }

    /** The key and the sequence number in an event. */
    record Label(String key, long sequence) {}

    /** Return an event's label, or null if the event is not ours. */
    static Label label(ByteBuffer event) {
        int first = indexOfBar(event, 0);
        int second = first < 0 ? -1 : indexOfBar(event, first + 1);
        if (second < 0) {
            return null;
        }
        byte[] bytes = new byte[second];
        event.duplicate().get(bytes);
        String key = new String(bytes, 0, first, StandardCharsets.UTF_8);
        String digits =
                new String(bytes, first + 1, second - first - 1, StandardCharsets.US_ASCII);
        try {
            return new Label(key, Long.parseLong(digits));
        } catch (NumberFormatException e) {
            return null;
        }
    }

    /** Return the time in a stamped event, by {@link System#nanoTime}. */
    static long stamp(ByteBuffer event) {
        int begin = -1;
        for (int bars = 0; bars < 3; bars++) {
            begin = indexOfBar(event, begin + 1);
            if (begin < 0) {
                throw new IllegalArgumentException("an event without a time");
            }
        }
        long time = 0;
        for (int i = event.position() + begin + 1; event.get(i) != '|'; i++) {
            time = time * 10 + event.get(i) - '0';
        }
        return time;
    }

    /** Hash an event. The sum over a stream is its digest, whatever the order of reading. */
    static long hash(ByteBuffer event) {
        long hash = 0xcbf29ce484222325L; // FNV-1a
        for (int i = event.position(); i < event.limit(); i++) {
            hash = (hash ^ (event.get(i) & 0xff)) * 0x100000001b3L;
        }
        hash = (hash ^ (hash >>> 33)) * 0xff51afd7ed558ccdL; // spread the bits before the sum
        return hash ^ (hash >>> 33);
    }

    private static int indexOfBar(ByteBuffer event, int from) {
        for (int i = from; i < event.remaining(); i++) {
            if (event.get(event.position() + i) == '|') {
                return i;
            }
        }
        return -1;
    }
}
