// Drives graphile-worker and pg-boss for the benchmark: node rivals.mjs '{"who": …, "command": …}'.
// It prints "bench {}" when it is ready, waits for a line, measures, and prints "bench {…}" with the results.
import { createInterface } from "node:readline";

const o = JSON.parse(process.argv[2]);
const stdin = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const say = (values) => process.stdout.write(`bench ${JSON.stringify(values)}\n`);
const start = async () => {
  say({});
  await stdin.next();
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const now = () => performance.now() / 1000;

// Runs f in so many loops at once until the time is over or f returns 0; how many it has done.
async function loops(clients, f) {
  const began = now();
  let n = 0;
  let dry = false;
  await Promise.all(
    Array.from({ length: clients }, async () => {
      while (!dry && now() - began < o.seconds) {
        const done = await f();
        dry ||= done === 0;
        n += done;
      }
    }),
  );
  return { n, seconds: now() - began };
}

// Counts what handlers do until the time, or the work, is over. The first second is to warm up.
async function handled(counter, total) {
  while (counter.n === 0) await sleep(1);
  for (const warm = now() + 1; now() < warm && counter.n < total / 2; ) await sleep(1);
  const began = now();
  const first = counter.n;
  while (now() - began < o.seconds && counter.n < total) await sleep(1);
  return { n: counter.n - first, seconds: now() - began };
}

// Sends one at a time to an idle queue: from the return of send to the start of the handler, in ms.
async function wakeUps(waiting, send) {
  const took = [];
  for (let i = 0; i < o.quantity + 5; i++) {
    await sleep(20 + 30 * Math.random());
    const entered = new Promise((resolve) => (waiting.resolve = () => resolve(now())));
    await send();
    const sent = now();
    const ms = ((await entered) - sent) * 1000;
    if (i >= 5) took.push(ms);
  }
  took.sort((a, b) => a - b);
  const at = (p) => took[Math.min(took.length - 1, Math.floor(took.length * p))];
  return { n: took.length, seconds: 1, p50: at(0.5), p99: at(0.99) };
}

const bodies = (n) => Array.from({ length: n }, () => ({ body: o.body }));

const commands = {
  "graphile-worker": {
    async migrate() {
      const { runMigrations } = await import("graphile-worker");
      await runMigrations({ connectionString: o.url });
      await start();
      return { n: 1, seconds: 1 };
    },
    // Handlers that do nothing. fast is what its documentation calls batching: jobs are fetched and completed many
    // at a time, outside of the handlers' transactions.
    async work() {
      const { run, Logger, makeWorkerUtils } = await import("graphile-worker");
      const logger = new Logger(() => () => {});
      const utils = await makeWorkerUtils({ connectionString: o.url, logger });
      for (let left = o.quantity; left > 0; left -= 10000) {
        await utils.addJobs(bodies(Math.min(left, 10000)).map((payload) => ({ identifier: "bench", payload })));
      }
      const counter = { n: 0 };
      await start();
      const runner = await run({
        connectionString: o.url,
        noHandleSignals: true,
        preset: {
          worker: {
            logger,
            concurrentJobs: o.clients,
            maxPoolSize: o.clients + 2,
            ...(o.fast ? { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } : {}),
          },
        },
        taskList: { bench: () => void counter.n++ },
      });
      const result = await handled(counter, o.quantity);
      await runner.stop();
      await utils.release();
      return result;
    },
    async wakeUp() {
      const { run, Logger, makeWorkerUtils } = await import("graphile-worker");
      const logger = new Logger(() => () => {});
      const waiting = {};
      const runner = await run({
        connectionString: o.url,
        noHandleSignals: true,
        preset: { worker: { logger, concurrentJobs: 1 } },
        taskList: { bench: () => waiting.resolve() },
      });
      const utils = await makeWorkerUtils({ connectionString: o.url, logger });
      await start();
      const result = await wakeUps(waiting, () => utils.addJob("bench", { body: o.body }));
      await runner.stop();
      await utils.release();
      return result;
    },
  },
  "pg-boss": {
    async send() {
      const boss = await pgBoss();
      await start();
      return loops(o.clients, async () => ((await boss.send("bench", { body: o.body })) ? 1 : 0));
    },
    async insert() {
      const boss = await pgBoss();
      const jobs = bodies(100).map((data) => ({ data }));
      await start();
      return loops(o.clients, async () => (await boss.insert("bench", jobs), 1));
    },
    async fetch() {
      const boss = await pgBoss();
      await fill(boss);
      await start();
      return loops(o.clients, async () => {
        const jobs = await boss.fetch("bench", { batchSize: o.batch });
        if (jobs.length > 0) await boss.complete("bench", jobs.map((job) => job.id));
        return jobs.length > 0 ? 1 : 0;
      });
    },
    async work() {
      const boss = await pgBoss();
      await fill(boss);
      const counter = { n: 0 };
      await start();
      await boss.work(
        "bench",
        { batchSize: o.batch, localConcurrency: o.clients, pollingIntervalSeconds: 0.5, burstWhenBatchFull: true },
        async (jobs) => void (counter.n += jobs.length),
      );
      return handled(counter, o.quantity);
    },
    async wakeUp() {
      const boss = await pgBoss();
      const waiting = {};
      await boss.work("bench", { notifyPollingIntervalSeconds: 30, pollingIntervalSeconds: 0.5 }, async () => waiting.resolve());
      await sleep(1000);
      await start();
      return wakeUps(waiting, () => boss.send("bench", { body: o.body }));
    },
  },
};

let boss;
async function pgBoss() {
  const { PgBoss } = await import("pg-boss");
  boss = new PgBoss({
    connectionString: o.url,
    max: o.clients + 2,
    schedule: false,
    useListenNotify: o.command === "wakeUp",
  });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue("bench", { notify: o.command === "wakeUp" });
  return boss;
}

async function fill(boss) {
  for (let left = o.quantity; left > 0; left -= 5000) {
    await boss.insert("bench", bodies(Math.min(left, 5000)).map((data) => ({ data })));
  }
}

say(await commands[o.who][o.command]());
await Promise.race([boss?.stop({ graceful: false }), sleep(5000)]);
process.exit(0);
