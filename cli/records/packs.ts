/** Whether the output is to be gzip: it is asked for, or the name of the file says so. */
export function packs({ gzip, output }: { readonly gzip?: unknown; readonly output?: unknown }): boolean {
    return gzip === true || (typeof output === 'string' && /\.gz$/i.test(output));
}
