/** Resolves when the work is done or the time is over, whichever comes first. A failure while stopping changes nothing. */
export async function within(milliseconds: number, work: Promise<unknown>): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise((resolve) => {
        timer = setTimeout(resolve, milliseconds);
    });
    await Promise.race([work.catch(() => {}), late]);
    clearTimeout(timer);
}
