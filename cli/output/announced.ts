/** After this long a person wonders, in milliseconds. */
const SILENCE = 1000;

/** What `work` comes to; where it takes long and a person looks on, stderr says what is waited for. */
export async function announced<T>(text: string, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
        if (process.stderr.isTTY) {
            process.stderr.write(`${text}\n`);
        }
    }, SILENCE);
    try {
        return await work;
    } finally {
        clearTimeout(timer);
    }
}
