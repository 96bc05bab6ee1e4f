import java.util.Map;
import org.apache.flink.streaming.api.TimeCharacteristic;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;

/** The query of the benchmark by Flink: {@code Windows CONTROLLER SCOPE STREAM}. */
final class Windows {
    private static final long CHECKPOINT = 1000; // milliseconds
    private static final long WATERMARK = 20; // milliseconds
    private static final long BUFFER = 5; // milliseconds

    private Windows() {}

    public static void main(String[] arguments) throws Exception {
        String stream = arguments[2];
        StreamExecutionEnvironment environment =
                StreamExecutionEnvironment.createLocalEnvironment(2);
        environment.setStreamTimeCharacteristic(TimeCharacteristic.EventTime);
        environment.getConfig().setAutoWatermarkInterval(WATERMARK);
        environment.setBufferTimeout(BUFFER);
        environment.enableCheckpointing(CHECKPOINT);
        StreamTableEnvironment tables =
                StreamTableEnvironment.create(
                        environment,
                        EnvironmentSettings.newInstance()
                                .useBlinkPlanner()
                                .inStreamingMode()
                                .build());
        Map<String, String> common =
                Map.of(
                        "connector", "pravega",
                        "controller-uri", arguments[0],
                        "scope", arguments[1],
                        "format", "json",
                        "json.timestamp-format.standard", "ISO-8601");
        // This version reads no zone in a time.
        tables.executeSql(
                "CREATE TABLE clicks (k STRING, ts STRING,"
                        + " t AS TO_TIMESTAMP(REPLACE(SUBSTRING(ts, 1, 23), 'T', ' '),"
                        + " 'yyyy-MM-dd HH:mm:ss.SSS'), WATERMARK FOR t AS t)"
                        + with(
                                common,
                                Map.of(
                                        "scan.execution.type", "streaming",
                                        "scan.reader-group.name", stream,
                                        "scan.streams", stream)));
        tables.executeSql(
                "CREATE TABLE counts (`start` TIMESTAMP(3), k STRING, n BIGINT)"
                        + with(
                                common,
                                Map.of(
                                        "sink.stream", stream + "-counts",
                                        "sink.semantic", "at-least-once",
                                        "sink.routing-key.field.name", "k")));
        tables.executeSql(
                        "INSERT INTO counts SELECT TUMBLE_START(t, INTERVAL '1' SECOND), k, COUNT(*)"
                                + " FROM clicks GROUP BY TUMBLE(t, INTERVAL '1' SECOND), k")
                .getJobClient()
                .orElseThrow()
                .getJobExecutionResult(Windows.class.getClassLoader())
                .get();
    }

    private static String with(Map<String, String> common, Map<String, String> own) {
        StringBuilder text = new StringBuilder(" WITH (");
        common.forEach((name, value) -> text.append('\'' + name + "' = '" + value + "', "));
        own.forEach((name, value) -> text.append('\'' + name + "' = '" + value + "', "));
        text.setLength(text.length() - 2);
        return text.append(')').toString();
    }
}
