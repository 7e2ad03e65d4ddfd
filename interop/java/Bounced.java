import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/**
 * A Java consumer with a list of assignors, as a rolling upgrade needs it: BOOTSTRAP GROUP TOPIC NAME ASSIGNOR[,ASSIGNOR].
 * Says what it owns and reads as one JSON object a line, and closes at the end of stdin or at any line of it.
 */
public class Bounced implements ConsumerRebalanceListener {
    private final String name;

    private Bounced(String name) {
        this.name = name;
    }

    public static void main(String[] words) throws Exception {
        Map<String, String> assignors = Map.of("range", "Range", "cooperative-sticky", "CooperativeSticky", "sticky", "Sticky");
        Properties settings = new Properties();
        settings.put("bootstrap.servers", words[0]);
        settings.put("group.id", words[1]);
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class.getName());
        settings.put("value.deserializer", StringDeserializer.class.getName());
        settings.put("partition.assignment.strategy", List.of(words[4].split(",")).stream()
            .map(word -> "org.apache.kafka.clients.consumer." + assignors.get(word) + "Assignor").collect(Collectors.joining(",")));
        Bounced me = new Bounced(words[3]);
        me.say("starting", "");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of(words[2]), me);
            while (System.in.available() == 0) {
                Map<TopicPartition, long[]> read = new HashMap<>();
                consumer.poll(Duration.ofMillis(100)).forEach(record -> {
                    long[] seen = read.computeIfAbsent(new TopicPartition(record.topic(), record.partition()), at -> new long[2]);
                    seen[0]++;
                    seen[1] = record.offset();
                });
                if (!read.isEmpty()) {
                    me.say("records", read.entrySet().stream().map(one -> place(one.getKey()) + "," + one.getValue()[0] + "," + one.getValue()[1] + "]")
                        .collect(Collectors.joining(",")));
                }
            }
            me.say("closing", "");
        } catch (Exception error) {
            me.say("error", "");
            throw error;
        }
        me.say("closed", "");
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
        changed("assigned", partitions);
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
        changed("revoked", partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
        changed("lost", partitions);
    }

    private void changed(String event, Collection<TopicPartition> partitions) {
        if (!partitions.isEmpty()) {
            say(event, partitions.stream().map(at -> place(at) + "]").collect(Collectors.joining(",")));
        }
    }

    private static String place(TopicPartition at) {
        return "[\"" + at.topic() + "\"," + at.partition();
    }

    private void say(String event, String partitions) {
        long now = System.currentTimeMillis();
        System.out.println("{\"t\":" + now + ",\"member\":\"" + name + "\",\"event\":\"" + event + "\",\"partitions\":[" + partitions + "]}");
        System.out.flush();
    }
}
