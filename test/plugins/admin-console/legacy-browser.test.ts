import { inBrowsers } from './browsing.ts';
import { receiver } from './host.ts';

inBrowsers(
    'people take a legacy exporter to the library once they were warned, and never back',
    async (t, { page, check, expect, server }) => {
        const { exporters } = server.plugins['webhook-exporter'];
        const { exporter } = await exporters.create({ url: await receiver(t), name: 'old', legacy: true });
        await page.goto(`/admin/exporters/${exporter.id}/edit`);
        await page.getByText('Once the library is included, there is no way back.').waitFor();
        await check('Edit, a legacy exporter');
        const type = page.getByRole('combobox', { name: /^Export type/ });
        t.match(await type.textContent(), 'Investigations including Legacy Detection Rules');
        await type.selectOption('investigation_legacy_and_library');
        await page.getByRole('button', { name: 'Save' }).click();
        await page.getByText('The changes were saved').waitFor();
        t.equal((await exporters.get(exporter.id)).type, 'investigation_legacy_and_library');

        await page.getByRole('button', { name: 'Edit' }).click();
        await type.selectOption('investigation_legacy');
        expect('409 /admin/exporters/{id}/edit');
        await page.getByRole('button', { name: 'Save' }).click();
        await page
            .getByRole('alert')
            .filter({ hasText: /type|library/i })
            .first()
            .waitFor();
        await check('Edit, the way back refused');
        t.equal((await exporters.get(exporter.id)).type, 'investigation_legacy_and_library');
    },
);
