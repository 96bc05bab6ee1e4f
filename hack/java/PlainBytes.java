import io.pravega.client.ByteStreamClientFactory;
import io.pravega.client.byteStream.ByteStreamReader;
import io.pravega.client.byteStream.ByteStreamWriter;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;

/** Commands for streams of one segment that have plain bytes in place of events. */
final class PlainBytes {
    private static final int BLOCK = 100_000;

    private final Session session;

    PlainBytes(Session session) {
        this.session = session;
    }

    /** Append random letters, so that no bytes look like the header of an event. */
    Map<String, Object> write(Command command) throws Exception {
        long count = command.number("bytes");
        Random random = new Random(command.number("seed", 0));
        try (ByteStreamClientFactory factory = factory(command);
                ByteStreamWriter writer = factory.createByteStreamWriter(command.stream())) {
            for (long left = count; left > 0; left -= BLOCK) {
                byte[] block = new byte[(int) Math.min(BLOCK, left)];
                for (int i = 0; i < block.length; i++) {
                    block[i] = (byte) ('a' + random.nextInt(26));
                }
                writer.write(block);
            }
            writer.flush();
        }
        return Map.of("bytes", count);
    }

    /** Read all bytes of a sealed stream. */
    Map<String, Object> read(Command command) throws Exception {
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        long bytes = 0;
        try (ByteStreamClientFactory factory = factory(command);
                ByteStreamReader reader = factory.createByteStreamReader(command.stream())) {
            byte[] block = new byte[BLOCK];
            for (int count = reader.read(block); count >= 0; count = reader.read(block)) {
                digest.update(block, 0, count);
                bytes += count;
            }
        }
        return Map.of("bytes", bytes, "sha256", HexFormat.of().formatHex(digest.digest()));
    }

    private ByteStreamClientFactory factory(Command command) {
        return ByteStreamClientFactory.withScope(command.scope(), session.config);
    }
}
