// JDK 17's ScheduledThreadPoolExecutor, with the two operations of the suite's workload `schedule`, for context: another language,
// another memory manager. Not part of the gate.
//
//   java bench/waterwheel-suite/jdk/Executor.java [rounds]
//
// Submit + cancel: 128 tasks due in 30 s are submitted, then all are cancelled, with setRemoveOnCancelPolicy(true), since here a cancelled job is removed
// at once. Submit + run: 1000 tasks due in a millisecond are submitted and awaited, each for its value. With two threads, both submit concurrently to one
// executor with two threads of its own; with one, one to one. Each starts with a tenth of its operations as warm-up, and the whole run with some seconds
// for the compiler. Prints the medians of the rounds: wall time and CPU time of the process, including the garbage collector's, for each operation.

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

public class Executor {
    static final int BATCH = 128;
    static final int HERD = 1_000;
    static final int CANCELLED = 256_000;
    static final int RUN = 100_000;
    static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** What is kept of a value, so that no compiler leaves it out. */
    static volatile long kept;

    interface Batch {
        void of(ScheduledThreadPoolExecutor executor) throws Exception;
    }

    static void cancel(ScheduledThreadPoolExecutor executor) {
        List<ScheduledFuture<?>> tasks = new ArrayList<>(BATCH);
        for (long n = 0; n < BATCH; n++) {
            long number = n;
            tasks.add(executor.schedule(() -> kept = number, 30, TimeUnit.SECONDS));
        }
        Thread.yield();
        for (ScheduledFuture<?> task : tasks) {
            task.cancel(false);
        }
        Thread.yield();
    }

    static void run(ScheduledThreadPoolExecutor executor) throws Exception {
        List<ScheduledFuture<Long>> tasks = new ArrayList<>(HERD);
        for (long n = 0; n < HERD; n++) {
            long number = n;
            tasks.add(executor.schedule(() -> number, 1, TimeUnit.MILLISECONDS));
        }
        long sum = 0;
        for (ScheduledFuture<Long> task : tasks) {
            sum += task.get();
        }
        kept = sum;
    }

    static void all(ScheduledThreadPoolExecutor executor, int threads, int batches, Batch batch)
            throws Exception {
        Thread[] submitters = new Thread[threads];
        for (int i = 0; i < threads; i++) {
            submitters[i] = new Thread(() -> {
                try {
                    for (int n = 0; n < batches; n++) {
                        batch.of(executor);
                    }
                } catch (Exception e) {
                    throw new IllegalStateException(e);
                }
            });
            submitters[i].start();
        }
        for (Thread submitter : submitters) {
            submitter.join();
        }
    }

    /** Nanoseconds of wall time and of CPU time for each operation. */
    static double[] sample(int threads, int operations, int size, Batch batch) throws Exception {
        ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(threads);
        executor.setRemoveOnCancelPolicy(true);
        executor.prestartAllCoreThreads();
        int batches = operations / size;
        all(executor, threads, batches / 10, batch);
        long cpu = PROCESS.getProcessCpuTime();
        long wall = System.nanoTime();
        all(executor, threads, batches, batch);
        wall = System.nanoTime() - wall;
        cpu = PROCESS.getProcessCpuTime() - cpu;
        executor.shutdownNow();
        double each = (double) batches * size * threads;
        return new double[] {wall / each, cpu / each};
    }

    static double median(double[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }

    static void measure(String name, int threads, int rounds, int operations, int size, Batch batch)
            throws Exception {
        double[] wall = new double[rounds];
        double[] cpu = new double[rounds];
        for (int round = 0; round < rounds; round++) {
            double[] sample = sample(threads, operations, size, batch);
            wall[round] = sample[0];
            cpu[round] = sample[1];
        }
        System.out.printf("| %s, %d thread%s | %.0f | %.0f |%n",
                name, threads, threads == 1 ? "" : "s", median(wall), median(cpu));
    }

    public static void main(String[] arguments) throws Exception {
        int rounds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 9;
        for (int warm = 0; warm < 5; warm++) {
            for (int threads = 1; threads <= 2; threads++) {
                sample(threads, CANCELLED, BATCH, Executor::cancel);
                sample(threads, RUN, HERD, Executor::run);
            }
        }
        System.out.printf("| ns an operation, medians of %d rounds, Java %s | wall | CPU |%n|---|--:|--:|%n",
                rounds, System.getProperty("java.version"));
        for (int threads = 1; threads <= 2; threads++) {
            measure("submit + cancel", threads, rounds, CANCELLED, BATCH, Executor::cancel);
        }
        for (int threads = 1; threads <= 2; threads++) {
            measure("submit + run", threads, rounds, RUN, HERD, Executor::run);
        }
    }
}
