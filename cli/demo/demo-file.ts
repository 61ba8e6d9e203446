import type { DataFolder } from '../data-folder.ts';
import { readKept, replaceKept } from '../kept-file.ts';

/** What an earlier start of the demo made, so that the next one finds it again. */
export interface DemoFile {
    readonly keyId?: string;
    readonly exporterId?: string;
    /** The secret as the receiver knows it. */
    readonly secret?: string;
    readonly port?: number;
}

export async function readDemoFile({ demo }: DataFolder): Promise<DemoFile> {
    try {
        return (JSON.parse((await readKept(demo)) ?? '{}') ?? {}) as DemoFile;
    } catch {
        return {};
    }
}

export async function writeDemoFile({ demo }: DataFolder, file: DemoFile): Promise<void> {
    await replaceKept(demo, `${JSON.stringify(file)}\n`);
}
