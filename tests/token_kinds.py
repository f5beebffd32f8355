"""Texts of many kinds for the token estimate: each kind has several short and long texts, as in conversations."""

from __future__ import annotations

import base64
import json
import random
import uuid
from typing import Final

_RANDOM: Final = random.Random(33)

_TALK: Final[dict[str, tuple[str, ...]]] = {
    "english": (
        "Could you move the meeting with Ana to Thursday afternoon? She can't make it before three.",
        "I've been thinking about what you said yesterday. The landlord wants the deposit back in two parts, and I don't "
        "think that's fair, because the contract says that everything is returned within thirty days of moving out. "
        "What would you write to him? Keep it friendly but firm, please, and mention the photographs that we took.",
        "The committee agreed that the library should stay open on Sundays during the exam period. Mrs. Whitmore asked "
        "who would pay for the additional staff; the treasurer answered that the reserve fund covers it until March. "
        "After that, the question will have to be decided again. Nobody objected, and the meeting was closed at half "
        "past nine. Afterwards several members stayed behind to talk about the leaking roof over the reading room.",
    ),
    "filipino": (
        "Pwede mo bang ilipat ang pulong namin ni Ana sa Huwebes ng hapon? Hindi siya makakarating bago mag-alas tres.",
        "Naisip ko yung sinabi mo kahapon. Gusto ng may-ari ng bahay na hatiin sa dalawa ang pagbabalik ng deposito, at "
        "sa tingin ko hindi iyon makatarungan, dahil nakasulat sa kontrata na ibabalik ang lahat sa loob ng tatlumpung "
        "araw pagkatapos naming lumipat. Ano kaya ang isusulat mo sa kanya? Dapat magalang pero matatag.",
        "Magkano po ba ang pamasahe papuntang Tagaytay galing Cubao? Balak naming umalis nang madaling-araw para hindi "
        "maipit sa trapiko, tapos kakain kami ng bulalo at babalik din kami kinagabihan.",
    ),
    "german": (
        "Kannst du den Termin mit Ana auf Donnerstagnachmittag verschieben? Vor drei Uhr schafft sie es leider nicht.",
        "Ich habe über das nachgedacht, was du gestern gesagt hast. Der Vermieter möchte die Kaution in zwei Teilen "
        "zurückzahlen, und das halte ich für unzulässig, weil im Mietvertrag steht, dass alles innerhalb von dreißig "
        "Tagen nach der Wohnungsübergabe zurückerstattet wird. Was würdest du ihm schreiben? Bitte freundlich, aber bestimmt.",
        "Die Geschäftsführung bestätigte die Übernahme der Versicherungsgesellschaft. Das Bundeskartellamt müsse noch "
        "zustimmen; mit Einschränkungen bei der Haftpflichtversicherung werde gerechnet.",
    ),
    "french": (
        "Peux-tu déplacer le rendez-vous avec Ana à jeudi après-midi ? Elle n'est pas disponible avant quinze heures.",
        "J'ai réfléchi à ce que tu m'as dit hier. Le propriétaire veut rembourser la caution en deux fois, et je ne trouve "
        "pas ça juste, parce que le contrat précise que tout est rendu dans les trente jours après le déménagement. "
        "Qu'est-ce que tu lui écrirais ? Reste aimable mais ferme, s'il te plaît.",
    ),
    "spanish": (
        "¿Puedes mover la reunión con Ana al jueves por la tarde? Antes de las tres no puede venir.",
        "He estado pensando en lo que dijiste ayer. El propietario quiere devolver la fianza en dos partes, y no me parece "
        "justo, porque el contrato dice que todo se devuelve dentro de los treinta días después de la mudanza. ¿Qué le "
        "escribirías tú? Que sea amable pero firme, y menciona las fotografías que sacamos en la cocina.",
    ),
    "polish": (
        "Czy możesz przełożyć spotkanie z Aną na czwartek po południu? Nie zdąży przyjść przed piętnastą.",
        "Myślałem o tym, co wczoraj powiedziałaś. Właściciel chce zwrócić kaucję w dwóch częściach, a ja uważam, że to "
        "nieuczciwe, ponieważ w umowie jest napisane, że wszystko zostanie zwrócone w ciągu trzydziestu dni od "
        "wyprowadzki. Co byś mu napisała? Uprzejmie, ale stanowczo, i wspomnij o zdjęciach z kuchni.",
    ),
    "turkish": (
        "Ana ile olan toplantıyı perşembe öğleden sonraya alabilir misin? Saat üçten önce gelemiyormuş.",
        "Dün söylediklerini düşündüm. Ev sahibi depozitoyu iki parça halinde geri vermek istiyor, bence bu haksızlık, "
        "çünkü sözleşmede taşındıktan sonra otuz gün içinde her şeyin iade edileceği yazıyor. Sen ona ne yazardın? "
        "Kibar ama kararlı olsun, mutfakta çektiğimiz fotoğraflardan da bahset.",
    ),
    "vietnamese": (
        "Bạn có thể dời cuộc họp với Ana sang chiều thứ Năm được không? Chị ấy không đến được trước ba giờ.",
        "Tôi đã suy nghĩ về điều bạn nói hôm qua. Chủ nhà muốn trả lại tiền cọc làm hai lần, và tôi nghĩ như vậy là không "
        "công bằng, vì hợp đồng ghi rằng mọi thứ sẽ được hoàn trả trong vòng ba mươi ngày sau khi chuyển đi.",
    ),
    "russian": (
        "Можешь перенести встречу с Анной на четверг после обеда? Раньше трёх она не успевает.",
        "Я думал о том, что ты сказала вчера. Хозяин квартиры хочет вернуть залог двумя частями, и мне это кажется "
        "несправедливым, потому что в договоре написано, что всё возвращается в течение тридцати дней после переезда. "
        "Что бы ты ему написала? Вежливо, но твёрдо, и упомяни, пожалуйста, фотографии из кухни.",
    ),
    "greek": (
        "Μπορείς να μεταφέρεις τη συνάντηση με την Άννα για την Πέμπτη το απόγευμα; Δεν προλαβαίνει πριν από τις τρεις.",
        "Σκεφτόμουν αυτό που είπες χθες. Ο ιδιοκτήτης θέλει να επιστρέψει την εγγύηση σε δύο δόσεις, και δεν το βρίσκω "
        "δίκαιο, γιατί το συμβόλαιο λέει ότι όλα επιστρέφονται μέσα σε τριάντα ημέρες από τη μετακόμιση.",
    ),
    "hebrew": (
        "את יכולה להעביר את הפגישה עם ענת ליום חמישי אחר הצהריים? היא לא יכולה להגיע לפני שלוש.",
        "חשבתי על מה שאמרת אתמול. בעל הבית רוצה להחזיר את הפיקדון בשני חלקים, ולדעתי זה לא הוגן, כי בחוזה כתוב שהכול "
        "מוחזר בתוך שלושים יום מהעזיבה. מה היית כותבת לו? בנימוס אבל בתקיפות, ותזכירי את התמונות מהמטבח.",
    ),
    "arabic": (
        "هل يمكنك نقل الاجتماع مع آنا إلى بعد ظهر يوم الخميس؟ لا تستطيع الحضور قبل الثالثة.",
        "كنت أفكر فيما قلته أمس. يريد صاحب البيت إعادة التأمين على دفعتين، وأرى أن هذا غير عادل، لأن العقد ينص على أن كل "
        "شيء يعاد خلال ثلاثين يوما من الانتقال. ماذا كنت ستكتبين له؟ بأسلوب لطيف ولكن حازم، واذكري الصور التي التقطناها.",
    ),
    "hindi": (
        "क्या तुम अना के साथ वाली बैठक गुरुवार दोपहर को कर सकते हो? वह तीन बजे से पहले नहीं आ सकती।",
        "मैं कल तुम्हारी कही हुई बात के बारे में सोच रहा था। मकान मालिक जमा राशि दो हिस्सों में लौटाना चाहता है, और मुझे यह "
        "उचित नहीं लगता, क्योंकि अनुबंध में लिखा है कि घर छोड़ने के तीस दिनों के भीतर सब कुछ लौटा दिया जाएगा। तुम उसे क्या लिखोगे?",
    ),
    "bengali": (
        "তুমি কি আনার সাথে বৈঠকটা বৃহস্পতিবার বিকেলে সরাতে পারবে? তিনটার আগে সে আসতে পারবে না।",
        "গতকাল তুমি যা বলেছিলে তা নিয়ে আমি ভাবছিলাম। বাড়িওয়ালা জামানত দুই ভাগে ফেরত দিতে চান, আর আমার মনে হয় এটা ঠিক নয়, "
        "কারণ চুক্তিতে লেখা আছে যে বাসা ছাড়ার ত্রিশ দিনের মধ্যে সবকিছু ফেরত দেওয়া হবে।",
    ),
    "tamil": (
        "அனாவுடனான சந்திப்பை வியாழக்கிழமை மதியத்திற்கு மாற்ற முடியுமா? மூன்று மணிக்கு முன் அவளால் வர முடியாது.",
        "நேற்று நீ சொன்னதைப் பற்றி யோசித்துக்கொண்டிருந்தேன். வீட்டு உரிமையாளர் முன்பணத்தை இரண்டு பகுதிகளாகத் திருப்பித் தர "
        "விரும்புகிறார், அது நியாயமில்லை என்று நினைக்கிறேன்.",
    ),
    "sinhala": (
        "ඔබට ඇනා සමඟ තිබෙන රැස්වීම බ්‍රහස්පතින්දා දහවලට මාරු කළ හැකිද? ඇයට තුනට පෙර පැමිණිය නොහැක.",
        "ඊයේ ඔබ කී දේ ගැන මම කල්පනා කළෙමි. නිවසේ හිමිකරු තැන්පතුව කොටස් දෙකකින් ආපසු දීමට කැමතියි, එය සාධාරණ නැතැයි මම සිතමි.",
    ),
    "thai": (
        "ช่วยเลื่อนประชุมกับแอนาไปเป็นบ่ายวันพฤหัสบดีได้ไหม เธอมาก่อนบ่ายสามโมงไม่ได้",
        "ฉันคิดถึงสิ่งที่คุณพูดเมื่อวานนี้ เจ้าของบ้านอยากคืนเงินมัดจำเป็นสองงวด ซึ่งฉันว่าไม่ยุติธรรม เพราะในสัญญาเขียนไว้ว่า"
        "ทุกอย่างจะคืนภายในสามสิบวันหลังจากย้ายออก คุณจะเขียนตอบเขาว่าอย่างไร ขอให้สุภาพแต่หนักแน่น",
    ),
    "lao": (
        "ເຈົ້າຊ່ວຍເລື່ອນການປະຊຸມກັບອານາໄປຕອນບ່າຍວັນພະຫັດໄດ້ບໍ? ລາວມາກ່ອນບ່າຍສາມໂມງບໍ່ໄດ້.",
        "ຂ້ອຍຄິດກ່ຽວກັບສິ່ງທີ່ເຈົ້າເວົ້າມື້ວານນີ້. ເຈົ້າຂອງເຮືອນຢາກຄືນເງິນມັດຈຳເປັນສອງງວດ ແລະ ຂ້ອຍຄິດວ່າບໍ່ຍຸດຕິທຳ.",
    ),
    "khmer": (
        "តើអ្នកអាចប្តូរការប្រជុំជាមួយអាណាទៅរសៀលថ្ងៃព្រហស្បតិ៍បានទេ? នាងមិនអាចមកមុនម៉ោងបីបានទេ។",
        "ខ្ញុំបានគិតអំពីអ្វីដែលអ្នកបាននិយាយកាលពីម្សិលមិញ។ ម្ចាស់ផ្ទះចង់សងប្រាក់កក់ជាពីរដង ហើយខ្ញុំគិតថាវាមិនយុត្តិធម៌ទេ។",
    ),
    "burmese": (
        "အာနာနဲ့ တွေ့ဆုံပွဲကို ကြာသပတေးနေ့ နေ့လယ်ပိုင်း ရွှေ့ပေးလို့ရမလား။ သူ သုံးနာရီမတိုင်ခင် မလာနိုင်ဘူး။",
        "မနေ့က မင်းပြောတာကို ကျွန်တော် စဉ်းစားနေတယ်။ အိမ်ရှင်က စရံငွေကို နှစ်ပိုင်းခွဲပြီး ပြန်ပေးချင်တယ်၊ ဒါဟာ မတရားဘူးလို့ ထင်တယ်။",
    ),
    "georgian": (
        "შეგიძლია ანასთან შეხვედრა ხუთშაბათს ნაშუადღევს გადაიტანო? სამ საათამდე მოსვლას ვერ ასწრებს.",
        "გუშინდელ ნათქვამზე ვფიქრობდი. სახლის პატრონს უნდა დეპოზიტი ორ ნაწილად დააბრუნოს, და ეს უსამართლოდ მიმაჩნია, რადგან "
        "ხელშეკრულებაში წერია, რომ ყველაფერი ოცდაათ დღეში ბრუნდება.",
    ),
    "armenian": (
        "Կարո՞ղ ես Անայի հետ հանդիպումը տեղափոխել հինգշաբթի կեսօրից հետո։ Նա երեքից շուտ չի կարող գալ։",
        "Ես մտածում էի երեկ քո ասածի մասին։ Տանտերը ուզում է կանխավճարը վերադարձնել երկու մասով, և ինձ դա արդար չի թվում։",
    ),
    "ethiopic": (
        "ከአና ጋር ያለውን ስብሰባ ወደ ሐሙስ ከሰዓት በኋላ ማዛወር ትችላለህ? ከሦስት ሰዓት በፊት መምጣት አትችልም።",
        "ትናንት ስላልከው ነገር እያሰብኩ ነበር። የቤቱ ባለቤት ተቀማጩን በሁለት ክፍል መመለስ ይፈልጋል፤ ይህ ደግሞ ተገቢ አይመስለኝም፤ ምክንያቱም በውሉ ላይ "
        "ቤቱን ከለቀቅን በኋላ በሠላሳ ቀናት ውስጥ ሁሉም ነገር እንደሚመለስ ተጽፏል። ምን ትጽፍለታለህ?",
    ),
    "rare alphabets": (
        "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ, ᐃᓄᒃᑎᑐᑦ ᑎᑎᕋᐅᓯᖅ, ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ",
        "བོད་ཡིག་ནི་བོད་མིའི་སྐད་ཡིག་ཡིན། ꦧꦱꦗꦮ ꆈꌠꉙ",
    ),
    "chinese": (
        "你能把和安娜的会议改到星期四下午吗?她三点以前来不了。",
        "我一直在想你昨天说的话。房东想分两次退还押金,我觉得这不公平,因为合同上写着搬走后三十天内全部退还。你会怎么给他写信?"
        "请客气一点,但要坚定,并且提到我们在厨房里拍的照片。委员会同意图书馆在考试期间星期天继续开放,额外的人员费用由储备金支付。",
    ),
    "traditional chinese": (
        "你可以把和安娜的會議改到星期四下午嗎?她三點以前來不了。",
        "我一直在想你昨天說的話。房東想分兩次退還押金,我覺得這樣不公平,因為合約上寫著搬走後三十天內全部退還。圖書館在考試期間繼續開放。",
    ),
    "japanese": (
        "アンナさんとの会議を木曜日の午後に変更してもらえますか。三時より前には来られないそうです。",
        "昨日あなたが言ったことについて考えていました。大家さんは敷金を二回に分けて返したいと言っていますが、契約書には退去後三十日以内に"
        "全額返還すると書いてあるので、それは公平ではないと思います。あなたなら何と書きますか。キッチンで撮った写真にも触れてください。",
    ),
    "korean": (
        "아나와의 회의를 목요일 오후로 옮겨 줄 수 있어요? 세 시 전에는 올 수 없다고 해요.",
        "어제 네가 한 말을 계속 생각하고 있었어. 집주인이 보증금을 두 번에 나눠서 돌려주겠다고 하는데, 계약서에는 이사한 후 삼십 일 안에 "
        "모두 돌려준다고 쓰여 있어서 공평하지 않다고 생각해. 너라면 뭐라고 쓰겠어? 부엌에서 찍은 사진도 언급해 줘.",
    ),
    "emoji": (
        "🎉🎉🎉 happy birthday!! 🥳🎂❤️ see you tonight 😘",
        "😂😂😂🤣 no way 🙈 👨‍👩‍👧‍👦 👍🏽👍🏽 🇵🇭🇩🇪 ✅ done, ⚠️ careful, ➡️ next 🚀🔥💯",
        "🧑🏾‍💻🧑🏾‍🔬🏳️‍🌈🧜‍♀️🫠🫡🪩🦤🪺🛝🧋🫶🏻🤌🏼👩🏿‍🚒🏴‍☠️🇯🇵🇧🇷🇿🇦⏱️🕰️♾️☕️",
    ),
    "mixed": (
        "Ok so si Ana said 木曜日 is fine, pero the 会議室 is booked na. Möchtest du lieber Freitag? Спасибо 🙏",
        "The error says «Доступ запрещён» (access denied), the log says 接続エラー, and the ticket is #48213-B: pakicheck mo nga, "
        "danke! Version 2.14.0-rc1, 3 retries, 99.95 % uptime, €1.234,56, ✓ approved.",
    ),
    "shouting": (
        "PLEASE READ THIS BEFORE YOU CONTINUE: THE SYSTEM WILL BE UNAVAILABLE ON SUNDAY. DO NOT SWITCH OFF THE PRINTER.",
        "NOTICE OF TERMINATION. THE TENANT SHALL VACATE THE PREMISES WITHIN THIRTY DAYS. LIMITATION OF LIABILITY: IN NO EVENT "
        "SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT OR OTHERWISE.",
    ),
    "python": (
        "def add(a: int, b: int) -> int:\n    return a + b\n",
        '''class RetryPolicy:
    """How often a call is tried again, and how long it waits."""

    def __init__(self, attempts: int = 3, base_delay: float = 0.5, max_delay: float = 30.0) -> None:
        if attempts < 1:
            raise ValueError(f"attempts must be at least 1, not {attempts}")
        self._attempts = attempts
        self._base_delay = base_delay
        self._max_delay = max_delay

    def delays(self) -> Iterator[float]:
        for attempt in range(self._attempts - 1):
            yield min(self._max_delay, self._base_delay * 2**attempt) * random.uniform(0.5, 1.5)


async def fetch(client: httpx.AsyncClient, url: str, *, policy: RetryPolicy) -> dict[str, Any]:
    async for attempt in AsyncRetrying(stop=stop_after_attempt(3), wait=wait_exponential(max=10)):
        with attempt:
            response = await client.get(url, headers={"Accept": "application/json"}, timeout=10.0)
            response.raise_for_status()
            return response.json()  # type: ignore[no-any-return]
''',
    ),
    "typescript": (
        "export const sum = (xs: number[]): number => xs.reduce((a, b) => a + b, 0);\n",
        """import { createClient, type SupabaseClient } from '@supabase/supabase-js';

interface MessageRow { id: string; threadId: string; createdAt: string; payload: Record<string, unknown> }

export async function loadMessages(client: SupabaseClient, threadId: string, limit = 50): Promise<MessageRow[]> {
  const { data, error } = await client
    .from('conversation_messages')
    .select('id, threadId:thread_id, createdAt:created_at, payload')
    .eq('thread_id', threadId)
    .order('sequence', { ascending: false })
    .limit(limit);
  if (error) throw new Error(`loadMessages failed: ${error.message} (${error.code})`);
  return (data ?? []).map((row) => ({ ...row, payload: JSON.parse(row.payload as string) }));
}
""",
    ),
    "rust": (
        """impl<'a, T: Clone + Send + 'static> Iterator for Windows<'a, T> {
    type Item = &'a [T];
    fn next(&mut self) -> Option<Self::Item> {
        if self.size > self.v.len() { return None; }
        let ret = Some(&self.v[..self.size]);
        self.v = &self.v[1..];
        ret
    }
}
""",
        "let x: Vec<_> = v.iter().filter(|&&n| n % 2 == 0).map(|n| n * n).collect::<Result<_, _>>()?;\n",
    ),
    "minified": (
        '!function(e,t){"object"==typeof exports&&"undefined"!=typeof module?module.exports=t():"function"==typeof define&&'
        'define.amd?define(t):(e=e||self).Vue=t()}(this,(function(){"use strict";var e=Object.freeze({});function t(e){return '
        'null==e}function n(e){return null!=e}function r(e){return!0===e}function o(e){return"string"==typeof e||"number"=='
        'typeof e}var i=Object.prototype.toString;function a(e){return"[object Object]"===i.call(e)}',
        ".btn{display:inline-block;padding:.375rem .75rem;font:400 1rem/1.5 system-ui;color:#fff;background:#0d6efd;border:1px "
        "solid #0d6efd;border-radius:.375rem}.btn:hover{background:#0b5ed7;border-color:#0a58ca}@media(max-width:576px){.btn{width:100%}}",
    ),
    "sql": (
        "select user_id, count(*) from memory.conversations where archived_at is null group by 1 order by 2 desc limit 10;",
        "WITH ranked AS (\n  SELECT c.id, c.email, o.total_cents, ROW_NUMBER() OVER (PARTITION BY c.id ORDER BY o.created_at DESC) AS rn\n"
        "  FROM customers c\n  LEFT JOIN orders o ON o.customer_id = c.id AND o.status <> 'CANCELLED'\n"
        "  WHERE c.created_at >= DATE '2024-01-01'\n)\nSELECT id, email, COALESCE(total_cents, 0) / 100.0 AS total\nFROM ranked WHERE rn = 1;\n",
    ),
    "html": (
        '<ul class="nav nav-tabs" id="myTab" role="tablist">\n  <li class="nav-item"><a class="nav-link active" href="#home">Home</a></li>\n'
        '  <li class="nav-item"><a class="nav-link" href="#profile" data-bs-toggle="tab">Profile</a></li>\n</ul>\n'
        "<table><thead><tr><th>Name</th><th>Price</th></tr></thead><tbody><tr><td>Tea &amp; milk</td><td>&euro;&nbsp;3.20</td></tr></tbody></table>\n",
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24"><path d="M12 2C6.48 2 2 6.48 2 12s4.48 10 10 10 10-4.48 10-10S17.52 '
        '2 12 2zm-2 15-5-5 1.41-1.41L10 14.17l7.59-7.59L19 8l-9 9z"/></svg>',
    ),
    "markdown": (
        "## Next steps\n\n- [x] **Call** the landlord\n- [ ] Send the *photographs* (see [folder](https://example.com/f/12))\n- [ ] Ask about `IBAN`\n\n"
        "> He said he would answer by Friday.\n\n| item | price |\n| --- | ---: |\n| deposit | 1,200.00 |\n| cleaning | 85.50 |\n",
        "# Setup\n\n1. Install the package:\n\n   ```bash\n   pip install -U langchain-core langgraph\n   ```\n\n2. Set `OPENAI_API_KEY`.\n\n---\n\n***Note:*** _it takes a minute._\n",
    ),
    "logs": (
        "2026-11-25T08:14:03.512Z INFO  [worker-3] c.e.billing.InvoiceService - created invoice 884213 for customer 40017 in 37 ms\n"
        "2026-11-25T08:14:03.977Z WARN  [worker-1] c.e.http.RetryFilter - GET /v2/accounts/40017 -> 503, retry 2/5 after 800 ms\n"
        "2026-11-25T08:14:05.001Z ERROR [worker-1] c.e.http.RetryFilter - giving up: java.net.SocketTimeoutException: Read timed out\n",
        '192.168.17.204 - - [25/Nov/2026:08:14:03 +0000] "GET /static/js/main.8f3a1c2e.js HTTP/1.1" 200 48213 "-" "Mozilla/5.0 (X11; Linux x86_64)"\n'
        '10.0.0.7 - alice [25/Nov/2026:08:14:09 +0000] "POST /api/v1/messages?limit=50 HTTP/2" 201 312 "https://app.example.com/" "curl/8.5.0"\n',
        'Traceback (most recent call last):\n  File "/usr/lib/python3.11/asyncio/runners.py", line 118, in run\n    return self._loop.run_until_complete(task)\n'
        "  File \"/srv/app/main.py\", line 42, in main\n    await serve(port=8080)\nOSError: [Errno 98] error while attempting to bind on address ('0.0.0.0', 8080)\n",
        "Nov 25 08:14:03 ip-10-0-3-17 kernel: [48213.104417] eth0: renamed from veth8f3a1c2\nNov 25 08:14:04 ip-10-0-3-17 sshd[20417]: Accepted publickey for deploy from 10.2.0.9 port 51422 ssh2\n",
    ),
    "urls": (
        "https://www.example.com/products/8841?utm_source=newsletter&utm_medium=email&utm_campaign=nov26&gclid=Cj0KCQiAgqGrBhDtARIsAM5s0_k",
        "https://docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit#gid=0\n"
        "https://github.com/langchain-ai/langgraph/blob/main/libs/checkpoint-postgres/langgraph/checkpoint/postgres/aio.py#L120-L148\n"
        "https://maps.example.org/?q=52.520008,13.404954&z=14\n"
        "https://en.wikipedia.org/wiki/Caf%C3%A9_au_lait?oldid=1187342210&action=history\n",
    ),
    "paths": (
        "/usr/local/lib/python3.11/site-packages/langchain_core/messages/utils.py\n/var/log/nginx/access.log.2.gz\n"
        "C:\\Users\\Ana\\AppData\\Local\\Programs\\Python\\Python311\\Scripts\\pip3.11.exe\n~/.config/nvim/lua/plugins/treesitter.lua\n",
    ),
    "whitespace": (
        "name:\n        first\n                second\n\n\n\n\n        third\t\tfourth\n\t\t\tfifth          sixth\n",
        "  root\n    |-- src\n    |     |-- main.c\n    |     `-- util\n    |           `-- list.c\n    `-- Makefile\n",
        "Total                                        42\nOpen                                          7\n\n\n\nClosed                                       35\n",
        '{\n        "a": {\n                "b": [\n                        1,\n                        2\n                ]\n        }\n}\n',
    ),
    "math": (
        "Let f(x) = 3x^2 - 4x + 7; then f'(x) = 6x - 4, so f'(2) = 8. The integral from 0 to 1 is 1 - 2 + 7 = 6.",
        "\\begin{align} \\nabla \\cdot \\mathbf{E} &= \\frac{\\rho}{\\varepsilon_0} \\\\ \\oint_C \\mathbf{B} \\cdot d\\boldsymbol{\\ell} &= \\mu_0 I_{enc} \\end{align}",
        "∀x∈ℝ: x² ≥ 0 ∧ ∑ᵢ₌₁ⁿ i = n(n+1)⁄2, ∫₀^∞ e^(−x²) dx = √π⁄2, α ≠ β ⇒ ¬(α ≡ β), |A ∩ B| ≤ min(|A|, |B|)",
    ),
    "chess and chemistry": (
        "1. e4 e5 2. Nf3 Nc6 3. Bb5 a6 4. Ba4 Nf6 5. O-O Be7 6. Re1 b5 7. Bb3 d6 8. c3 O-O 9. h3 Nb8 10. d4 Nbd7",
        "CC(C)CC1=CC=C(C=C1)C(C)C(=O)O CN1C=NC2=C1C(=O)N(C(=O)N2C)C C8H10N4O2 + 2 H2SO4 -> Na2SO4",
    ),
    "drawing": (
        "┌──────────┬────────┐\n│ item     │  price │\n├──────────┼────────┤\n│ deposit  │ 1,200  │\n└──────────┴────────┘\n",
        "████████░░░░ 66% ▁▂▃▄▅▆▇█ ●○●○ ★★★☆☆ →→ ⇒ • • •",
        "-----+-----+-----\n a   |  b  |  c\n=====+=====+=====\n#### ###### #### ______ ...... ~~~~~~\n",
    ),
    "odd forms": (
        "a\u200bb\u200cc\u200dd\ufeffe\u2060f soft\u00adhyphen nb\u00a0space thin\u2009space",
        "𝓗𝓮𝓵𝓵𝓸 𝔴𝔬𝔯𝔩𝔡 𝟙𝟚𝟛 Ⓗⓔⓛⓛⓞ ＨＥＬＬＯ ｗｏｒｌｄ １２３",
    ),
}


def _hex(count: int) -> str:
    return _RANDOM.randbytes(count).hex()


def _uuids(count: int) -> list[str]:
    return [str(uuid.UUID(bytes=_RANDOM.randbytes(16), version=4)) for _ in range(count)]


def _base64(count: int) -> str:
    return base64.b64encode(_RANDOM.randbytes(count)).decode()


def _row(index: int) -> dict[str, object]:
    return {
        "id": _uuids(1)[0],
        "orderNumber": 88_000 + index,
        "customer": {"name": _RANDOM.choice(["Ana Cruz", "Bea Lim", "Jörg Weiß"]), "vip": bool(index % 2)},
        "total": round(_RANDOM.uniform(3, 900), 2),
        "created_at": f"2026-11-{10 + index % 19}T08:{10 + index % 49}:03Z",
        "tags": ["new", "paid"][: index % 3],
        "note": None,
    }


_ROWS: Final = [_row(index) for index in range(12)]
_ALPHABET: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

_DATA: Final[dict[str, tuple[str, ...]]] = {
    "base64": (_base64(48), "data:image/png;base64," + _base64(600), "\n".join(_base64(48) for _ in range(20))),
    "hex": (_hex(20), " ".join(_hex(20) for _ in range(15)), _hex(16).upper(), "0x" + _hex(400)),
    "hex dump": ("\n".join(f"{at:08x}  {_RANDOM.randbytes(16).hex(' ')}" for at in range(0, 160, 16)),),
    "uuids": (_uuids(1)[0], "\n".join(_uuids(20)), ", ".join(f'"{each.upper()}"' for each in _uuids(10))),
    "keys": tuple(
        prefix + "".join(_RANDOM.choices(_ALPHABET, k=length))
        for prefix, length in (("sk-proj-", 48), ("ghp_", 36), ("xoxb-", 60), ("AKIA", 16), ("eyJhbGciOiJIUzI1NiJ9.", 240))
    ),
    "random lower case": ("".join(_RANDOM.choices(_ALPHABET[26:52], k=60)), "".join(_RANDOM.choices(_ALPHABET[26:], k=400))),
    "codes": tuple(
        sep.join("".join(_RANDOM.choices(_ALPHABET[:26] + _ALPHABET[52:], k=8)) for _ in range(count))
        for sep, count in ((", ", 6), ("\n", 40))
    ),
    "json": (json.dumps(_ROWS[0]), json.dumps(_ROWS), json.dumps(_ROWS[:5], separators=(",", ":"))),
    "indented json": (json.dumps(_ROWS[:2], indent=2), json.dumps(_ROWS, indent=4)),
    "escaped json": (json.dumps(json.dumps(_ROWS[:4])), json.dumps({"text": "Grüße aus München, 東京 и Москва"})),
    "tool calls": (
        json.dumps([{"name": "search_flights", "args": {"from": "MNL", "to": "NRT", "date": "2026-12-03", "adults": 2}, "id": "call_" + _base64(18)}]),
        json.dumps([{"name": "run_sql", "args": {"query": "select * from orders where id = 88013 limit 1"}, "id": f"toolu_{_hex(12)}"} for _ in range(4)]),
    ),
    "numbers": (
        ", ".join(str(_RANDOM.randrange(10**9)) for _ in range(30)),
        " ".join(str(each) for each in range(1, 120)),
        "\n".join(",".join(f"{_RANDOM.gauss(0, 40):.4f}" for _ in range(6)) for _ in range(12)),
        "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899",
        "\n".join(f"{_RANDOM.uniform(-90, 90):.6f}\t{_RANDOM.uniform(-180, 180):.6f}\t{_RANDOM.randrange(9999)}" for _ in range(12)),
    ),
    "digits alone": (" ".join(_RANDOM.choices("0123456789", k=60)), ",".join(_RANDOM.choices("0123456789", k=200)), "[" + ", ".join(_RANDOM.choices("01", k=90)) + "]"),
    "vectors": ("[" + ", ".join(f"{_RANDOM.uniform(-1, 1):.8f}" for _ in range(40)) + "]", ",".join(f"{_RANDOM.uniform(-1, 1):.3e}" for _ in range(40))),
    "tables": (
        "date,store,item,qty,price\n" + "\n".join(f"2026-11-{10 + i},S{i % 4:02},SKU-{_RANDOM.randrange(99999):05},{i % 7},{_RANDOM.uniform(1, 99):.2f}" for i in range(15)),
        "| id | name | qty |\n|---|---|---|\n" + "\n".join(f"| {i} | {_RANDOM.choice(['bolt', 'nut', 'washer'])} M{i} | {i * 37} |" for i in range(12)),
    ),
    "phones and dates": (
        "+63 917 555 0142, +49 (0)30 901820, 2026-11-25 08:14, 25.11.2026, 11/25/26, 08:14:03, IBAN DE89 3704 0044 0532 0130 00",
        "\n".join(f"0{_RANDOM.randrange(9 * 10**9):010}  {_RANDOM.randrange(24):02}:{_RANDOM.randrange(60):02}  {i:02}.11.26" for i in range(1, 20)),
    ),
    "passwords": ("\n".join("".join(_RANDOM.choices(_ALPHABET + "!#$%&*+-=?@^_", k=16)) for _ in range(15)),),
    "hashes": ("\n".join(f"{_hex(32)}  dist/{name}-{i}.{i + 1}.0-py3-none-any.whl" for i, name in enumerate(["alpha", "beta", "gamma"])), "sha512-" + _base64(64)),
}  # fmt: skip

TEXTS: Final[dict[str, tuple[str, ...]]] = {**_TALK, **_DATA}
"""The texts of each kind."""
