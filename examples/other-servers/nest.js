import 'reflect-metadata';
import { Body, Controller, Inject, Module, Post } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { addFinding, TABLE } from './findings.js';
import { runAlone } from './run-alone.js';
import { startScanwire } from './scanwire.js';

const SCANWIRE = Symbol('scanwire');
const POOL = Symbol('pool');

class Findings {
    constructor(scanwire, pool) {
        this.scanwire = scanwire;
        this.pool = pool;
    }

    async add({ title }) {
        return await addFinding(this.pool, this.scanwire.publish, title);
    }
}

// Decorators called as what they are, functions. In TypeScript: @Controller('findings'), @Inject(SCANWIRE), @Post(), @Body().
Controller('findings')(Findings);
Inject(SCANWIRE)(Findings, undefined, 0);
Inject(POOL)(Findings, undefined, 1);
Post()(Findings.prototype, 'add', Object.getOwnPropertyDescriptor(Findings.prototype, 'add'));
Body()(Findings.prototype, 'add', 0);

/** Scanwire as a provider: it has started before anything that it is injected into is made, and stops after the last request. */
function scanwireProvider(options) {
    return {
        provide: SCANWIRE,
        async useFactory() {
            const scanwire = await startScanwire(options);
            return { ...scanwire, onApplicationShutdown: () => scanwire.stop() };
        },
    };
}

function appModule({ pool, ...options }) {
    class AppModule {}
    const providers = [scanwireProvider({ pool, ...options }), { provide: POOL, useValue: pool }];
    Module({ controllers: [Findings], providers })(AppModule);
    return AppModule;
}

export async function startServer({ pool, port = 3000, ...options }) {
    await pool.query(TABLE);
    const app = await NestFactory.create(appModule({ pool, ...options }), { logger: ['error', 'warn'], abortOnError: false });

    // Before `listen`, in which Nest adds its parsers of bodies. Express has cut the path off `url`.
    const scanwire = app.get(SCANWIRE);
    app.use('/scan', (request, response) => {
        request.url = request.originalUrl;
        scanwire.handle(request, response);
    });

    await app.listen(port, '127.0.0.1');
    return { scanwire, url: `http://127.0.0.1:${app.getHttpServer().address().port}`, stop: () => app.close() };
}

await runAlone(import.meta.url, startServer);
