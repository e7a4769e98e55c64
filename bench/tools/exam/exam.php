<?php
// SPDX-License-Identifier: BSD-3-Clause
//
// exam.php - a small online examination: a student signs in, reads one question after the other, answers them, and sees the result
//
// Every page is made from the database, and every answer is recorded in it. Who has signed in is kept in PHP's session, whose
// number is in a cookie. The page of a question has the text that the question is about, which is most of its size.
//
//   POST /sign-in      student=NUMBER            greets, and shows the rules
//   GET  /question     number=NUMBER             shows a question
//   POST /answer       number=NUMBER&choice=A    records the answer, and shows the question again with the choice
//   GET  /result                                 shows all answers with the first text again
//
// An error has a status of its own (400, 403, 404, 500), so that a client which looks at nothing else notices it.
declare(strict_types=1);

const CHOICES = ['A', 'B', 'C', 'D'];

/** Ends the request with an error page. */
function refuse(int $status, string $why): never
{
    http_response_code($status);
    page('Error', '<p>' . htmlspecialchars($why) . "</p>\n");
    exit;
}

/** Prints a page. Its length is in the header, so that a client notices a page that has not arrived in full. */
function page(string $title, string $body): void
{
    $html = "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>" . htmlspecialchars($title)
        . "</title></head>\n<body>\n<h1>" . htmlspecialchars($title) . "</h1>\n$body</body>\n</html>\n";
    header('Content-Length: ' . strlen($html));
    echo $html;
}

/** Returns the connection to the database, which this PHP process keeps for later requests. */
function database(): mysqli
{
    static $connection = null;
    mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
    return $connection ??= new mysqli('p:' . $_SERVER['EXAM_DATABASE'], 'exam', 'exam', 'exam');
}

/** Returns the rows that an SQL statement finds. Only numbers and checked letters may be in it. */
function rows(string $sql): array
{
    $result = database()->query($sql);
    return $result instanceof mysqli_result ? $result->fetch_all(MYSQLI_ASSOC) : [];
}

/** Returns who has signed in. */
function student(): int
{
    session_start(['read_and_close' => true]);
    return $_SESSION['student'] ?? refuse(403, 'Please sign in first.');
}

/** Returns a positive number among the request's fields. */
function number(array $fields, string $name): int
{
    $number = filter_var($fields[$name] ?? null, FILTER_VALIDATE_INT, ['options' => ['min_range' => 1]]);
    return $number === false ? refuse(400, "$name is to be a number.") : $number;
}

/** Returns a question as HTML, with one of its choices marked unless that is null. */
function question(int $number, ?string $chosen): string
{
    $question = rows("SELECT passage, text, choices FROM questions WHERE number = $number")[0]
        ?? refuse(404, 'There is no such question.');
    $choices = '';
    foreach (array_combine(CHOICES, explode("\n", $question['choices'])) as $letter => $text) {
        $checked = $letter === $chosen ? ' checked' : '';
        $choices .= "<label><input type=\"radio\" name=\"choice\" value=\"$letter\"$checked>" . htmlspecialchars($text) . "</label><br>\n";
    }
    return '<p>' . htmlspecialchars($question['passage']) . "</p>\n<form method=\"post\" action=\"/answer\">\n<p>"
        . htmlspecialchars($question['text']) . "</p>\n<input type=\"hidden\" name=\"number\" value=\"$number\">\n$choices"
        . "<button>Answer</button>\n</form>\n";
}

function sign_in(): void
{
    $number = number($_POST, 'student');
    $name = rows("SELECT name FROM students WHERE number = $number")[0]['name'] ?? refuse(403, 'Nobody has this number.');
    session_start();
    $_SESSION['student'] = $number;
    session_write_close();
    $rules = rows('SELECT passage FROM questions WHERE number = 1')[0]['passage'];
    page("Welcome, $name", '<p>' . htmlspecialchars($rules) . "</p>\n<a href=\"/question?number=1\">Begin</a>\n");
}

function show_question(): void
{
    student();
    $number = number($_GET, 'number');
    page("Question $number", question($number, null));
}

function record_answer(): void
{
    $student = student();
    $number = number($_POST, 'number');
    $choice = in_array($_POST['choice'] ?? '', CHOICES, true) ? $_POST['choice'] : refuse(400, 'There is no such choice.');
    $html = question($number, $choice);
    rows("INSERT INTO answers (student, number, choice) VALUES ($student, $number, '$choice') ON DUPLICATE KEY UPDATE choice = '$choice'");
    page("Question $number: recorded", $html);
}

function show_result(): void
{
    $student = student();
    $found = rows("SELECT number, choice FROM answers WHERE student = $student ORDER BY number");
    $list = '';
    foreach ($found as $answer) {
        $list .= "<li value=\"{$answer['number']}\">{$answer['choice']}</li>\n";
    }
    $closing = rows('SELECT passage FROM questions WHERE number = 1')[0]['passage'];
    page('Your answers: ' . count($found), "<ol>\n$list</ol>\n<p>" . htmlspecialchars($closing) . "</p>\n");
}

$routes = ['POST /sign-in' => sign_in(...), 'GET /question' => show_question(...), 'POST /answer' => record_answer(...),
           'GET /result' => show_result(...)];
$route = $routes[$_SERVER['REQUEST_METHOD'] . ' ' . parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)]
    ?? refuse(404, 'There is no such page.');
try {
    $route();
} catch (mysqli_sql_exception $error) {
    refuse(500, $error->getMessage());
}
