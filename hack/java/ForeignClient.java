import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/**
 * Pravega's own Java client behind a few commands. It makes the tests' data and judges the results,
 * and shares no code with Sluice.
 *
 * <pre>
 * ForeignClient URI COMMAND key=value...   runs one command, prints its result as a line of JSON
 * ForeignClient URI serve                  reads a command from each line, until the input ends
 * </pre>
 *
 * <p>{@code together} runs many commands side by side: see {@link Together}.
 *
 * <p>Answers are {@code {"result": {...}}} or {@code {"error": "...", "type": "..."}}.
 */
public final class ForeignClient {
    private static final Gson GSON = new GsonBuilder().serializeNulls().create();

    private final Streams streams;
    private final Reads reads;
    private final Groups groups;
    private final Tables tables;
    private final Writes writes;
    private final Transactions transactions;
    private final PlainBytes plainBytes;
    private final Copies copies;
    private final Exports exports;
    private final Many many;
    private final Together together;

    private ForeignClient(Session session) {
        reads = new Reads(session);
        groups = new Groups(session);
        tables = new Tables(session);
        streams = new Streams(session, reads);
        writes = new Writes(session);
        transactions = new Transactions(session, writes);
        plainBytes = new PlainBytes(session);
        copies = new Copies(session, reads);
        exports = new Exports(session, reads);
        many = new Many(session);
        together = new Together(this::run);
    }

    /** Run one command or serve many. */
    public static void main(String[] words) throws IOException {
        if (words.length < 2) {
            System.err.println("usage: ForeignClient URI (serve | COMMAND key=value...)");
            System.exit(2);
        }
        PrintStream answers = System.out;
        System.setOut(System.err); // other output must not look like an answer
        boolean failed = false;
        try (Session session = new Session(words[0])) {
            ForeignClient client = new ForeignClient(session);
            List<String> command = Arrays.asList(words).subList(1, words.length);
            if (command.get(0).equals("serve")) {
                client.serve(answers);
            } else {
                Map<String, Object> answer = client.answer(command);
                answers.println(GSON.toJson(answer));
                failed = answer.containsKey("error");
            }
        }
        // The client's thread pools would keep the JVM alive.
        System.exit(failed ? 1 : 0);
    }

    private void serve(PrintStream answers) throws IOException {
        BufferedReader input =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            answers.println(GSON.toJson(answer(Arrays.asList(line.trim().split(" +")))));
            answers.flush();
        }
    }

    private Map<String, Object> answer(List<String> words) {
        Map<String, Object> answer = new LinkedHashMap<>();
        try {
            boolean many = words.get(0).equals("together");
            answer.put("result", many ? together.run(words) : run(words));
        } catch (Exception e) {
            e.printStackTrace();
            Throwable cause = rootOf(e);
            answer.put("error", String.valueOf(cause.getMessage()));
            answer.put("type", cause.getClass().getSimpleName());
        }
        return answer;
    }

    private Map<String, Object> run(List<String> words) throws Exception {
        Command command = Command.parse(words);
        return switch (command.name()) {
            case "ping" -> Map.of();
            case "createScope" -> streams.createScope(command);
            case "create" -> streams.create(command);
            case "update" -> streams.update(command);
            case "configuration" -> streams.configuration(command);
            case "seal" -> streams.seal(command);
            case "delete" -> streams.delete(command);
            case "deleteScope" -> streams.deleteScope(command);
            case "list" -> streams.list(command);
            case "truncate" -> streams.truncate(command);
            case "scale" -> streams.scale(command);
            case "info" -> streams.info(command);
            case "token" -> streams.token(command);
            case "write" -> writes.write(command);
            case "writeTransactions" -> transactions.write(command);
            case "writeBytes" -> plainBytes.write(command);
            case "readBytes" -> plainBytes.read(command);
            case "startWriter" -> writes.start(command);
            case "stopWriter" -> writes.stop(command);
            case "read" -> reads.read(command);
            case "createGroup" -> groups.create(command);
            case "deleteGroup" -> groups.delete(command);
            case "groupCuts" -> groups.cuts(command);
            case "readGroup" -> groups.read(command);
            case "leaveGroup" -> groups.leave(command);
            case "createTable" -> tables.create(command);
            case "deleteTable" -> tables.delete(command);
            case "startReaders" -> reads.start(command);
            case "startDelays" -> reads.startDelays(command);
            case "startRelay" -> reads.startRelay(command);
            case "account" -> reads.account(command);
            case "leave" -> reads.leave(command);
            case "readSoFar" -> reads.soFar(command);
            case "stopReaders" -> reads.stop(command);
            case "visible" -> reads.visible(command);
            case "copy" -> copies.copy(command);
            case "export" -> exports.export(command);
            case "createMany" -> many.create(command);
            case "fillMany" -> many.fill(command);
            case "deleteMany" -> many.delete(command);
            default -> throw new IllegalArgumentException("unknown command " + command.name());
        };
    }

    private static Throwable rootOf(Throwable error) {
        Throwable root = error;
        while ((root instanceof CompletionException || root instanceof ExecutionException)
                && root.getCause() != null) {
            root = root.getCause();
        }
        return root;
    }
}
