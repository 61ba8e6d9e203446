/** The promise's result, or a rejection with `reason` once `ms` milliseconds are over; the promise itself goes on unobserved. */
export async function within<T>(ms: number, promise: Promise<T>, reason: string): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    const deadline = new Promise<never>((_resolve, reject) => {
        timer = setTimeout(() => reject(new Error(reason)), ms);
    });

    try {
        return await Promise.race([promise, deadline]);
    } finally {
        clearTimeout(timer);
    }
}
