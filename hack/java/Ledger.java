import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;

/** An account of the read events, which checks that each key's numbers come once and in order. */
final class Ledger implements Account {
    private final Map<String, Key> keys = new HashMap<>();
    private long events;
    private long bytes;
    private long digest;
    private long foreign;
    private long outOfOrder;
    private long duplicates;

    /** The seen numbers of one key: all of {@code first .. next - 1} except the missing. */
    private static final class Key {
        long first;
        long next;
        final Set<Long> missing = new HashSet<>();
    }

    @Override
    public void enter(ByteBuffer event) {
        events++;
        bytes += event.remaining();
        digest += Payload.hash(event);
        Payload.Label label = Payload.label(event);
        if (label == null) {
            foreign++;
        } else {
            check(label);
        }
    }

    private void check(Payload.Label label) {
        long sequence = label.sequence();
        Key key = keys.get(label.key());
        if (key == null) {
            key = new Key();
            key.first = sequence;
            key.next = sequence + 1;
            keys.put(label.key(), key);
        } else if (sequence >= key.next) {
            for (long skipped = key.next; skipped < sequence; skipped++) {
                key.missing.add(skipped);
            }
            key.next = sequence + 1;
        } else if (sequence < key.first) {
            outOfOrder++;
            for (long skipped = sequence + 1; skipped < key.first; skipped++) {
                key.missing.add(skipped);
            }
            key.first = sequence;
        } else if (key.missing.remove(sequence)) {
            outOfOrder++;
        } else {
            duplicates++;
        }
    }

    @Override
    public long events() {
        return events;
    }

    /** Return the bytes of the events in segments, each with a header of 8 bytes. */
    long storedBytes() {
        return bytes + events * Long.BYTES;
    }

    @Override
    public Map<String, Object> report() {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("events", events);
        report.put("bytes", bytes);
        report.put("keys", keys.size());
        report.put("keys_from_zero", keys.values().stream().filter(k -> k.first == 0).count());
        report.put("out_of_order", outOfOrder);
        report.put("duplicates", duplicates);
        report.put("missing", keys.values().stream().mapToLong(k -> k.missing.size()).sum());
        report.put("foreign", foreign);
        report.put("digest", String.format("%016x", digest));
        return report;
    }
}
