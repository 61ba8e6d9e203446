import type { Answer } from './answer.ts';

/** Prints what a command has to say; a bad result makes the exit code 1. */
export async function printAnswer(answer: Answer | undefined, json: boolean): Promise<void> {
    if (answer === undefined) {
        return;
    }

    const text = json ? JSON.stringify(answer.json) : await answer.text();
    (answer.aside === true ? process.stderr : process.stdout).write(`${text}\n`);
    if (answer.failed === true) {
        process.exitCode = 1;
    }
}
