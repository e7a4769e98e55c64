// SPDX-License-Identifier: BSD-3-Clause
// RuntimeClient.java - Java's ways to the network: RuntimeClient httpclient|blocking|nio HOST
// The task is in runtime_client.py.
import java.io.IOException;
import java.io.InputStream;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

public class RuntimeClient {
    static final int COUNT = 8;
    static final int SIZE = 1000000;
    static final byte[] PATTERN = new byte[SIZE];
    static String host;

    static {
        for (int i = 0; i < SIZE; i++)
            PATTERN[i] = (byte) (i % 251);
    }

    static int sizeOf(int number) {
        return 200000 + number;
    }

    static void verify(int number, byte[] data) {
        if (!Arrays.equals(data, 0, data.length, PATTERN, 0, sizeOf(number)))
            throw new IllegalStateException(number + ": " + data.length + " other bytes");
    }

    static void done() {
        System.out.println(COUNT + " done, " + SIZE + " up");
    }

    // --- HttpClient: asynchronous, over NIO ------------------------------------------------------

    static HttpRequest.Builder request(int port, String path) {
        URI uri = URI.create("http://" + host + ":" + port + path);
        return HttpRequest.newBuilder(uri).version(HttpClient.Version.HTTP_1_1);
    }

    static String expectedAnswer() throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(PATTERN);
        return "bytes=" + SIZE + " sha256=" + HexFormat.of().formatHex(digest) + "\n";
    }

    static void httpclient() throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        List<CompletableFuture<HttpResponse<byte[]>>> answers = new ArrayList<>();
        for (int i = 0; i < COUNT; i++)
            answers.add(client.sendAsync(request(80, "/bytes/" + sizeOf(i)).build(),
                    HttpResponse.BodyHandlers.ofByteArray()));
        for (int i = 0; i < COUNT; i++)
            verify(i, answers.get(i).get().body());
        HttpRequest upload = request(80, "/upload")
                .PUT(HttpRequest.BodyPublishers.ofByteArray(PATTERN)).build();
        String answer = client.send(upload, HttpResponse.BodyHandlers.ofString()).body();
        if (!answer.equals(expectedAnswer()))
            throw new IllegalStateException("the server got " + answer);
        done();
        client.send(request(9999, "/").build(), HttpResponse.BodyHandlers.discarding());
    }

    // --- Socket: a thread each, with a time-out for connecting in every second one --------------

    static void echoed(int number) throws IOException {
        try (Socket socket = new Socket()) {
            InetSocketAddress server = new InetSocketAddress(host, 7);
            if (number % 2 == 0)
                socket.connect(server);
            else
                socket.connect(server, 10000);
            socket.setSoTimeout(20000);
            Thread sender = new Thread(() -> {
                try {
                    socket.getOutputStream().write(PATTERN, 0, sizeOf(number));
                    socket.shutdownOutput();
                } catch (IOException error) {
                    throw new IllegalStateException(error);
                }
            });
            sender.start();
            InputStream in = socket.getInputStream();
            verify(number, in.readAllBytes());
        }
    }

    static void blocking() throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(COUNT);
        List<Future<Object>> clients = new ArrayList<>();
        for (int i = 0; i < COUNT; i++) {
            int number = i;
            Callable<Object> client = () -> {
                echoed(number);
                return null;
            };
            clients.add(pool.submit(client));
        }
        for (Future<Object> client : clients)
            client.get();
        pool.shutdown();
        done();
        new Socket(host, 9999).close();
    }

    // --- SocketChannel: one selector for all -----------------------------------------------------

    static class Conversation {
        final int number;
        final ByteBuffer out;
        final ByteBuffer in;

        Conversation(int number) {
            this.number = number;
            out = ByteBuffer.wrap(PATTERN, 0, sizeOf(number));
            in = ByteBuffer.allocateDirect(sizeOf(number) + 1);
        }

        // Returns whether it is at its end.
        boolean step(SelectionKey key) throws IOException {
            SocketChannel channel = (SocketChannel) key.channel();
            if (key.isConnectable() && channel.finishConnect())
                key.interestOps(SelectionKey.OP_READ | SelectionKey.OP_WRITE);
            if (key.isWritable()) {
                channel.write(out);
                if (!out.hasRemaining()) {
                    channel.shutdownOutput();
                    key.interestOps(SelectionKey.OP_READ);
                }
            }
            if (!key.isReadable() || channel.read(in) >= 0)
                return false;
            byte[] data = new byte[in.flip().remaining()];
            in.get(data);
            verify(number, data);
            channel.close();
            return true;
        }
    }

    static void nio() throws Exception {
        Selector selector = Selector.open();
        for (int i = 0; i < COUNT; i++) {
            SocketChannel channel = SocketChannel.open();
            channel.configureBlocking(false);
            channel.connect(new InetSocketAddress(host, 7));
            channel.register(selector, SelectionKey.OP_CONNECT, new Conversation(i));
        }
        for (int left = COUNT; left > 0;) {
            if (selector.select(20000) == 0)
                throw new IllegalStateException(left + " connections are stuck");
            for (SelectionKey key : selector.selectedKeys())
                if (((Conversation) key.attachment()).step(key))
                    left--;
            selector.selectedKeys().clear();
        }
        done();
        SocketChannel.open(new InetSocketAddress(host, 9999)).close();
    }

    public static void main(String[] args) throws Exception {
        host = args[1];
        try {
            switch (args[0]) {
                case "httpclient" -> httpclient();
                case "blocking" -> blocking();
                default -> nio();
            }
        } catch (ConnectException refused) {
            System.out.println("refused");
            System.exit(0);
        }
        System.exit(1);
    }
}
