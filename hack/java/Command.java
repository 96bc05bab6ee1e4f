import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** A command with its arguments, as written on the command line or on a line of input. */
record Command(String name, Map<String, String> arguments) {

    /** Parse words of the form {@code name key=value ...}; values cannot contain spaces. */
    static Command parse(List<String> words) {
        Map<String, String> arguments = new LinkedHashMap<>();
        for (String word : words.subList(1, words.size())) {
            int split = word.indexOf('=');
            if (split < 1) {
                throw new IllegalArgumentException("not key=value: " + word);
            }
            arguments.put(word.substring(0, split), word.substring(split + 1));
        }
        return new Command(words.get(0), arguments);
    }

    boolean has(String key) {
        return arguments.containsKey(key);
    }

    String text(String key) {
        String value = arguments.get(key);
        if (value == null) {
            throw new IllegalArgumentException(name + " needs " + key + "=...");
        }
        return value;
    }

    String text(String key, String otherwise) {
        return arguments.getOrDefault(key, otherwise);
    }

    long number(String key) {
        return Long.parseLong(text(key));
    }

    long number(String key, long otherwise) {
        return has(key) ? number(key) : otherwise;
    }

    int count(String key, int otherwise) {
        return Math.toIntExact(number(key, otherwise));
    }

    /** Return a list of numbers separated by commas; a missing argument is an empty list. */
    List<Long> numbers(String key) {
        return has(key) ? Arrays.stream(text(key).split(",")).map(Long::valueOf).toList() : List.of();
    }

    String scope() {
        return text("scope");
    }

    String stream() {
        return text("stream");
    }
}
