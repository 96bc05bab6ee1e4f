import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Scripts that run side by side, each with its commands one after the other.
 *
 * <pre>
 * together THREADS ; COMMAND key=value... , COMMAND key=value... ; COMMAND key=value... , ...
 * </pre>
 *
 * <p>The answer has a list for each script, with the result of each of its commands.
 */
final class Together {
    private final Commands commands;

    Together(Commands commands) {
        this.commands = commands;
    }

    /** A runner of one command. */
    interface Commands {
        Map<String, Object> run(List<String> words) throws Exception;
    }

    Map<String, Object> run(List<String> words) throws InterruptedException, ExecutionException {
        List<List<String>> scripts = split(words, ";");
        int count = Integer.parseInt(scripts.get(0).get(1));
        ExecutorService threads = Executors.newFixedThreadPool(count);
        try {
            List<Callable<List<Map<String, Object>>>> calls = new ArrayList<>();
            for (List<String> script : scripts.subList(1, scripts.size())) {
                calls.add(() -> each(script));
            }
            List<Object> results = new ArrayList<>();
            for (Future<List<Map<String, Object>>> done : threads.invokeAll(calls)) {
                results.add(done.get());
            }
            return Map.of("results", results);
        } finally {
            threads.shutdownNow();
        }
    }

    private List<Map<String, Object>> each(List<String> script) throws Exception {
        List<Map<String, Object>> results = new ArrayList<>();
        for (List<String> command : split(script, ",")) {
            results.add(commands.run(command));
        }
        return results;
    }

    private static List<List<String>> split(List<String> words, String at) {
        List<List<String>> parts = new ArrayList<>();
        int begin = 0;
        for (int i = 0; i <= words.size(); i++) {
            if (i == words.size() || words.get(i).equals(at)) {
                parts.add(words.subList(begin, i));
                begin = i + 1;
            }
        }
        return parts;
    }
}
