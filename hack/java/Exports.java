import io.pravega.client.batch.SegmentRange;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/**
 * Exports of a stream's events to files by the official client, as a program without Sluice would
 * make them. The files are not compressed, synced or read back.
 */
final class Exports {
    private static final int BUFFER_BYTES = 1 << 20;

    private final SegmentLoop loop;

    Exports(Session session, Reads reads) {
        this.loop = new SegmentLoop(session, reads);
    }

    Map<String, Object> export(Command command) throws InterruptedException, ExecutionException {
        Path folder = Path.of(command.text("folder"));
        String mode = command.text("mode");
        return loop.run(
                command.scope(),
                command.stream(),
                command.count("threads", 2),
                range -> exportSegment(range, folder, mode));
    }

    private void exportSegment(SegmentRange range, Path folder, String mode) throws Exception {
        String name = Long.toString(range.getSegmentId());
        Files.createDirectories(folder);
        switch (mode) {
            case "segments" -> exportToOne(range, folder.resolve(name));
            case "events" -> exportEach(range, Files.createDirectory(folder.resolve(name)));
            default -> throw new IllegalArgumentException("mode is segments or events");
        }
    }

    /** Write all events to one file, each behind its length. */
    private void exportToOne(SegmentRange range, Path file) throws Exception {
        try (DataOutputStream output =
                new DataOutputStream(
                        new BufferedOutputStream(Files.newOutputStream(file), BUFFER_BYTES))) {
            loop.each(
                    range,
                    event -> {
                        output.writeInt(event.remaining());
                        write(output, event);
                    });
        }
    }

    /** Write each event to a file, whose name is the event's number. */
    private void exportEach(SegmentRange range, Path folder) throws Exception {
        long[] number = {0};
        loop.each(
                range,
                event -> {
                    byte[] bytes = new byte[event.remaining()];
                    event.get(bytes);
                    Files.write(folder.resolve(Long.toString(number[0]++)), bytes);
                });
    }

    private static void write(DataOutputStream output, ByteBuffer event) throws IOException {
        byte[] bytes = new byte[event.remaining()];
        event.get(bytes);
        output.write(bytes);
    }
}
