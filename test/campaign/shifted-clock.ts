/*
 * Preloaded into a process by `--import`: its wall clock is off by as many milliseconds as the last message `{ clockOffset }` said.
 * Monotonic time stays as it is, as on a machine whose clock is set.
 */
const RealDate = Date;
let offset = 0;

const now = (): number => RealDate.now() + offset;

globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now()] : args, newTarget),
    apply: () => new RealDate(now()).toString(),
    get: (target, property, receiver) => (property === 'now' ? now : Reflect.get(target, property, receiver)),
});

process.on('message', (message: { readonly clockOffset?: number }) => {
    offset = message.clockOffset ?? offset;
});
