import java.nio.ByteBuffer;

/**
 * Events of many lengths, from three fifths of a size to seven fifths; the mean is the size. The
 * lengths follow from the events' numbers, so that the sum of all bytes is known beforehand.
 */
final class Mixed implements Events {
    private static final int STEP = 37;

    /** The makers of events, one for each length. */
    private final Payload[] lengths;

    Mixed(int size, long seed) {
        int shortest = size * 3 / 5;
        lengths = new Payload[size * 4 / 5 + 1];
        for (int i = 0; i < lengths.length; i++) {
            lengths[i] = new Payload(shortest + i, seed);
        }
    }

    @Override
    public ByteBuffer make(String key, long sequence, long number) {
        int turn = (int) (number * STEP % lengths.length);
        return lengths[turn].make(key, sequence, number);
    }
}
