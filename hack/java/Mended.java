import java.util.Arrays;
import javassist.ClassPool;
import javassist.CtClass;

/**
 * Start a program of Pravega 0.13 with a fault mended that takes whole processors.
 *
 * <p>Each commit of the metadata of chunks ends with a removal of no keys, which appends no bytes to
 * a table. The table's writer takes that for work. If it comes alone, no flush does away with it: the
 * writer then flushes nothing, again and again without a pause, until the table gets another append.
 * In an idle container that may take minutes, and each container may do so.
 */
final class Mended {
    private static final String TABLES = "io.pravega.segmentstore.server.tables.";
    private static final String APPEND =
            "io.pravega.segmentstore.server.logs.operations.CachedStreamSegmentAppendOperation";

    private Mended() {}

    /** Run the main class that the first argument names, with the other arguments. */
    public static void main(String[] arguments) throws Exception {
        skipEmptyAppends();
        String[] others = Arrays.copyOfRange(arguments, 1, arguments.length);
        Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, (Object) others);
    }

    /** Have the writers of tables leave out appends of no bytes. */
    private static void skipEmptyAppends() throws Exception {
        CtClass writer = ClassPool.getDefault().get(TABLES + "WriterTableProcessor");
        writer.getDeclaredMethod("add").insertBefore(
                "if ($1 instanceof " + APPEND + " && ((" + APPEND + ") $1).getLength() == 0L) return;");
        // A class of the same package, which is loaded first and does not need the writer.
        ClassLoader loader = Mended.class.getClassLoader();
        writer.toClass(Class.forName(TABLES + "ContainerTableExtension", false, loader));
    }
}
