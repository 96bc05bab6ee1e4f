import io.pravega.client.admin.KeyValueTableManager;
import io.pravega.client.tables.KeyValueTableConfiguration;
import java.util.Map;

/** Commands that create and delete key-value tables. */
final class Tables {
    private final Session session;

    Tables(Session session) {
        this.session = session;
    }

    /** Create an empty table of one partition, with keys of 8 bytes. */
    Map<String, Object> create(Command command) {
        KeyValueTableConfiguration configuration =
                KeyValueTableConfiguration.builder().partitionCount(1).primaryKeyLength(8).build();
        try (KeyValueTableManager tables = manager()) {
            return Map.of(
                    "changed",
                    tables.createKeyValueTable(
                            command.scope(), command.text("table"), configuration));
        }
    }

    Map<String, Object> delete(Command command) {
        try (KeyValueTableManager tables = manager()) {
            return Map.of(
                    "changed", tables.deleteKeyValueTable(command.scope(), command.text("table")));
        }
    }

    private KeyValueTableManager manager() {
        return KeyValueTableManager.create(session.config);
    }
}
