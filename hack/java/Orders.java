import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * Events like those of applications: JSON with recurring names and varying values, and a note that
 * fills it up. So they compress like real data.
 */
final class Orders implements Events {
    private static final String[] WORDS = {
        "please", "deliver", "to", "the", "back", "door", "after", "six", "ring", "twice", "leave",
        "with", "neighbour", "gift", "wrapped", "urgent", "fragile", "call", "before", "no", "bag"
    };

    private final int size;
    private final long seed;

    Orders(int size, long seed) {
        this.size = size;
        this.seed = seed;
    }

    @Override
    public ByteBuffer make(String key, long sequence, long number) {
        SplittableRandom random = new SplittableRandom(seed * 31 + number);
        StringBuilder text = new StringBuilder(size + 64);
        text.append("{\"order\":").append(number);
        text.append(",\"customer\":\"").append(key).append('-').append(sequence);
        text.append("\",\"at\":").append(1_790_000_000_000L + number * 7 + random.nextInt(7));
        text.append(",\"article\":\"").append(Integer.toHexString(random.nextInt(1 << 20)));
        text.append("\",\"count\":").append(1 + random.nextInt(9));
        text.append(",\"cents\":").append(random.nextInt(1_000_000));
        text.append(",\"note\":\"");
        if (text.length() + 2 > size) {
            throw new IllegalArgumentException("size " + size + " does not hold an order");
        }
        while (text.length() < size - 2) {
            text.append(WORDS[random.nextInt(WORDS.length)]).append(' ');
        }
        text.setLength(size - 2);
        byte[] event = text.append("\"}").toString().getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.wrap(Arrays.copyOf(event, size));
    }
}
