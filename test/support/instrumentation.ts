import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A span that has ended in another process. Ids are hexadecimal. */
export interface EndedSpan {
    readonly name: string;
    readonly traceId: string;
    readonly spanId: string;
    /** Absent for one at the top. */
    readonly parentId?: string;
}

/** An SDK of OpenTelemetry for commands. */
export interface Instrumentation {
    /** `NODE_OPTIONS` by which a command registers it. */
    readonly NODE_OPTIONS: string;
    /** What has ended by now in the processes that have it, in the order of the ends. */
    spans(): readonly EndedSpan[];
}

/** A module that registers an SDK, and writes each span that has ended into a file; both are in the folder. */
export function instrumentation(folder: string): Instrumentation {
    const [file, spans] = [join(folder, 'instrumentation.mjs'), join(folder, 'spans')];
    const packages = ['@opentelemetry/api', '@opentelemetry/sdk-trace-base', '@opentelemetry/context-async-hooks'];
    const [api, sdk, hooks] = packages.map((name) => JSON.stringify(import.meta.resolve(name)));
    writeFileSync(spans, '');
    writeFileSync(
        file,
        `import { appendFileSync } from 'node:fs';
import { context, trace } from ${api};
import { BasicTracerProvider } from ${sdk};
import { AsyncLocalStorageContextManager } from ${hooks};
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const onEnd = (span) => {
    const { traceId, spanId } = span.spanContext();
    const ended = { name: span.name, traceId, spanId, parentId: span.parentSpanContext?.spanId };
    appendFileSync(${JSON.stringify(spans)}, JSON.stringify(ended) + '\\n');
};
const written = { onStart() {}, onEnd, forceFlush: async () => {}, shutdown: async () => {} };
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [written] }));
`,
    );
    return {
        NODE_OPTIONS: `--import=${pathToFileURL(file).href}`,
        spans: () =>
            readFileSync(spans, 'utf8')
                .split('\n')
                .filter((line) => line !== '')
                .map((line) => JSON.parse(line) as EndedSpan),
    };
}
