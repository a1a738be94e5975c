import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import tlc2.value.impl.*;
import util.UniqueString;

/** The operators of TraceFile.tla: traces read from JSON Lines, and how far each was followed. */
public class TraceFile {
    private static final int FAR = 1 << 30;     // an LBA or a count beyond it is cut to it: their sum fits 32 bits
    private static final Set<String> names = new TreeSet<>();
    private static final Value traces = read(Path.of(System.getProperty("traces")));
    private static final int[] reached = new int[((TupleValue) traces).elems.length];
    private static final int[] states = new int[reached.length];
    private static final int most = Integer.getInteger("most", Integer.MAX_VALUE);    // states of one trace

    public static Value Traces() { return traces; }

    public static Value LegalNames() {
        return new SetEnumValue(names.stream().map(StringValue::new).toArray(Value[]::new), false);
    }

    public static synchronized Value Reached(Value trace, Value next) {
        int t = ((IntValue) trace).val - 1;
        reached[t] = Math.max(reached[t], ((IntValue) next).val);
        return ++states[t] <= most ? BoolValue.ValTrue : BoolValue.ValFalse;
    }

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            System.out.println("Reached: " + listed(IntStream.of(reached)));
            System.out.println("Given up: " + listed(IntStream.range(0, states.length).filter(t -> states[t] > most)));
        }));
    }

    private static String listed(IntStream numbers) {
        return numbers.mapToObj(Integer::toString).collect(Collectors.joining(" "));
    }

    private static Value read(Path path) {
        List<Value> all = new ArrayList<>(), events = new ArrayList<>();
        Value header = null;
        try (Stream<String> lines = Files.lines(path)) {
            for (String line : (Iterable<String>) lines::iterator) {
                RecordValue value = (RecordValue) new TraceFile(line).value(FAR);
                boolean first = Arrays.stream(value.names).anyMatch(n -> n.toString().equals("trace"));
                if (!first) events.add(value);
                else {
                    if (header != null) all.add(trace(header, events));
                    header = value;
                    events.clear();
                }
            }
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
        if (header != null) all.add(trace(header, events));
        return new TupleValue(all.toArray(Value[]::new));
    }

    private static Value trace(Value header, List<Value> events) {
        return record(Map.of("header", header, "events", new TupleValue(events.toArray(Value[]::new))));
    }

    private static Value record(Map<String, Value> fields) {
        UniqueString[] keys = fields.keySet().stream().map(UniqueString::uniqueStringOf).toArray(UniqueString[]::new);
        return new RecordValue(keys, fields.values().toArray(Value[]::new), false);
    }

    // A JSON text, and the place in it that is read next.

    private final String text;
    private int at = 0;

    private TraceFile(String text) { this.text = text; }

    private char peek() {
        while (Character.isWhitespace(text.charAt(at))) at++;
        return text.charAt(at);
    }

    private boolean skip(char c) {
        if (peek() == c) { at++; return true; }
        return false;
    }

    /** The value that starts here; null if it is null. A number is cut to -limit .. limit. */
    private Value value(int limit) {
        if (skip('{')) {
            Map<String, Value> fields = new LinkedHashMap<>();
            while (!skip('}')) {
                skip(',');
                String key = string();
                skip(':');
                Value value = value(limit);
                if (value != null) fields.put(key, value);
            }
            return record(fields);
        }
        if (skip('[')) {
            List<Value> items = new ArrayList<>();
            while (!skip(']')) { items.add(value(Integer.MAX_VALUE)); skip(','); }
            return new TupleValue(items.toArray(Value[]::new));
        }
        if (peek() == '"') {
            String s = string();
            if (s.matches("[A-Za-z0-9._-]{1,64}")) names.add(s);
            return new StringValue(s);
        }
        int start = at;
        while (at < text.length() && ",]} \t".indexOf(text.charAt(at)) < 0) at++;
        String word = text.substring(start, at);
        switch (word) {
            case "null": return null;
            case "true": return BoolValue.ValTrue;
            case "false": return BoolValue.ValFalse;
            default: return IntValue.gen((int) Math.max(-limit, Math.min(limit, Double.parseDouble(word))));
        }
    }

    private String string() {
        skip('"');
        StringBuilder s = new StringBuilder();
        for (char c; (c = text.charAt(at++)) != '"'; ) {
            if (c != '\\') { s.append(c); continue; }
            c = text.charAt(at++);
            if (c == 'u') { s.append((char) Integer.parseInt(text.substring(at, at += 4), 16)); continue; }
            int plain = "bfnrt".indexOf(c);
            s.append(plain < 0 ? c : "\b\f\n\r\t".charAt(plain));
        }
        return s.toString();
    }
}
