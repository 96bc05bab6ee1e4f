import java.nio.ByteBuffer;

/**
 * Events of many lengths, from three fifths of a size to seven fifths, of which it is the mean: the
 * lengths take turns by the events' numbers, so that all bytes can be told beforehand.
 */
final class Mixed implements Events {
    private static final int STEP = 37;

    /** For each length, what makes events of it. */
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
