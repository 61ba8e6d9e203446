/*
 * Run by test/package.test.ts: a CommonJS host that loads every subpath of the package by `require`, and registers each
 * plugin in a hapi server with nothing else. Prints the names of what each subpath exports as JSON.
 */
const Hapi = require('@hapi/hapi');
const { exports: subpaths } = require('scanwire/package.json');

const modules = new Map();
for (const subpath of Object.keys(subpaths).filter((name) => !name.endsWith('.json'))) {
    modules.set(subpath.slice(2), require(`scanwire/${subpath.slice(2)}`));
}

const memory = modules.get('memory');
const keyRing = modules.get('keys').keyRing({ current: 'k1', keys: { k1: new Uint8Array(32) } });

/** A new plugin says here what it needs at least. */
const needs = {
    'token-auth': () => ({ options: { store: memory.memoryApiKeys(), keyRing } }),
    'rest-api-v2': () => ({
        before: ['token-auth'],
        options: { store: memory.memoryInventory(), license: modules.get('license').alwaysLicensed() },
    }),
    'metasploit-data': () => needs['rest-api-v2'](),
    mcp: () => needs['rest-api-v2'](),
    'webhook-exporter': () => ({ options: { stores: memory.memoryWebhooks(), queue: memory.memoryQueue(), keyRing } }),
    metrics: () => ({ before: ['webhook-exporter'], options: { auth: false } }),
    'webhook-auth': () => ({ options: { secrets: ['s'] } }),
    'https-record-schema': () => ({ options: {} }),
    'admin-console': () => ({
        options: { system: { inventory: memory.memoryInventory() }, auth: false, authorize: () => true },
    }),
};

async function register(server, name) {
    const { before = [], options } = needs[name]();
    for (const other of before) {
        await register(server, other);
    }

    await server.register({ plugin: modules.get(name), options });
}

async function main() {
    const plugins = [...modules].filter(([, module]) => 'plugin' in module).map(([name]) => name);
    for (const name of plugins) {
        const server = Hapi.server();
        await register(server, name);
        await server.initialize();
        await server.stop();
    }

    const names = Object.fromEntries(
        [...modules].map(([name, module]) => [name, Object.keys(module).filter((key) => key !== '__esModule')]),
    );
    process.stdout.write(JSON.stringify({ names, plugins }));
}

void main();
