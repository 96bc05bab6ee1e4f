import io.pravega.client.ClientConfig;
import io.pravega.client.admin.StreamManager;
import io.pravega.client.control.impl.Controller;
import io.pravega.client.control.impl.ControllerImpl;
import io.pravega.client.control.impl.ControllerImplConfig;
import io.pravega.shared.security.auth.DefaultCredentials;
import java.net.URI;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;

/** The objects that all commands share: the store's address and the costly clients. */
final class Session implements AutoCloseable {
    final ClientConfig config;
    final StreamManager streams;

    /** The client's own controller stub, since scaling and key ranges have no public call. */
    final Controller controller;

    final ScheduledExecutorService executor = Executors.newScheduledThreadPool(2);

    Session(String uri) {
        ClientConfig.ClientConfigBuilder builder =
                ClientConfig.builder().controllerURI(URI.create(uri));
        // From the environment, because all users can read a command line.
        String user = System.getenv("FOREIGN_USER");
        if (user != null) {
            String password = System.getenv("FOREIGN_PASSWORD");
            builder.credentials(new DefaultCredentials(password, user));
        }
        String trust = System.getenv("FOREIGN_TRUST");
        if (trust != null) {
            builder.trustStore(trust);
        }
        config = builder.build();
        streams = StreamManager.create(config);
        controller =
                new ControllerImpl(
                        ControllerImplConfig.builder().clientConfig(config).build(), executor);
    }

    @Override
    public void close() {
        controller.close();
        streams.close();
        executor.shutdownNow();
    }
}
