/*
 * Preloaded into a process by `--import`: what it imports of scanwire comes from the compiled checkout that the variable
 * CAMPAIGN_VERSION names, so that the programs of this campaign run another version.
 */
import { createRequire, type ResolveHook, register } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread } from 'node:worker_threads';

const checkout = process.env.CAMPAIGN_VERSION;
if (isMainThread && checkout !== undefined) {
    register(import.meta.url);
}

/** Runs in the thread of the hooks. */
export const resolve: ResolveHook = (specifier, context, next) => {
    const within = specifier.startsWith('scanwire/') && checkout !== undefined;
    return next(specifier, within ? { ...context, parentURL: pathToFileURL(join(checkout, 'package.json')).href } : context);
};

/** A module of the version in a compiled checkout; `T` is what this version has under that name. */
export async function importFrom<T>(checkout: string, specifier: string): Promise<T> {
    const file = createRequire(join(checkout, 'package.json')).resolve(specifier);
    return (await import(pathToFileURL(file).href)) as T;
}
